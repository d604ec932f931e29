#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// a b of two sizes, where an Index can hold it; else ShapeError with both.
inline Index product_of_sizes(Index a, Index b, const char* what) {
    Index product = 0;
    require<ShapeError>(!__builtin_mul_overflow(a, b, &product), what, ": ", a, " times ", b,
                        " is more than an Index can count");
    return product;
}

/// The same of a sum.
inline Index sum_of_sizes(Index a, Index b, const char* what) {
    Index sum = 0;
    require<ShapeError>(!__builtin_add_overflow(a, b, &sum), what, ": ", a, " and ", b,
                        " are more than an Index can count");
    return sum;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
