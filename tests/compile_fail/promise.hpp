#pragma once

// What the sources of this folder share. Each shows one promise of the placements: with REIGEN_FORBIDDEN it must not
// compile, and the compiler must print the sentence that the source begins with; without, the line that the sentence
// asks for compiles.

#include <reigen/layout/parameter.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/same_bits.hpp>
#include <reigen/matmul/sums.hpp>

using namespace reigen;

template <Placement Where>
using Matrix = Sharded<float, Where>;
