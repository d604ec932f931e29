#pragma once

// Attention over a ring of ranks, forward and backward.

#include <reigen/attention/ring_backward.hpp>
#include <reigen/attention/ring_forward.hpp>
