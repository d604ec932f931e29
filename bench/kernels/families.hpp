#pragma once

// The families of rows this program measures: one function and one file each.

void register_peak();
void register_gemm();
void register_attention();
void register_decode();
