#pragma once

#include <reigen/core/types.hpp>

#include <cstdint>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The type in which numbers travel from rank to rank, whatever they are computed in.
///
///     unchanged   as they are
///     bf16        each rounded to the nearest bfloat16, a double by way of float: by 2^-8 of itself at most, or by
///                 2^-134 where it is below 2^-126; from 3.396e38 on to infinity. Half of float's bytes, a quarter of
///                 double's; bfloat16 itself does not change
enum class WireType : std::uint8_t { unchanged, bf16 };

inline const char* to_string(WireType wire) {
    return wire == WireType::bf16 ? "bfloat16" : "unchanged";
}

namespace detail {

/// The type in which S travels.
template <class S, WireType Wire>
using OnWire = std::conditional_t<Wire == WireType::bf16 && std::is_floating_point_v<S>, bfloat16, S>;

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
