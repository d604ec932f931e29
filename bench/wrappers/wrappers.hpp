#pragma once

// What the wrappers of a communicator cost; each prints a table.

void measure_checked();
void measure_traced();
