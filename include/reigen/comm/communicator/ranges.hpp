#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/collectives/part_sizes.hpp>
#include <reigen/core/error.hpp>

#include <cstddef>
#include <cstdint>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Where the two ranges of a collective lie. What is written where it is still to be read would give wrong numbers.

inline std::uintptr_t address(const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at);
}

inline bool ranges_overlap(const Operation& operation) {
    const auto in_bytes = std::uintptr_t(operation.in_size * size_of(operation.type));
    const auto out_bytes = std::uintptr_t(operation.out_size * size_of(operation.type));
    return in_bytes > 0 && out_bytes > 0 && address(operation.in) < address(operation.out) + out_bytes &&
           address(operation.out) < address(operation.in) + in_bytes;
}

/// Of a rank's part and the whole, of which it may be a piece already: the part in its place.
///
/// Throws  ArgumentError
inline void require_apart_or_in_place(const Operation& operation, int rank) {
    const bool part_is_read = operation.call == Call::all_gather;
    const std::byte* const part = part_is_read ? operation.in : operation.out;
    const std::byte* const whole = part_is_read ? operation.out : operation.in;
    const Index equal_part = part_is_read ? operation.in_size : operation.out_size;
    const Index before = operation.parts.empty() ? rank * equal_part : sum_of(operation.parts.first(std::size_t(rank)));
    const bool in_place = address(part) == address(whole) + std::uintptr_t(before * size_of(operation.type));
    require(in_place || !ranges_overlap(operation), to_string(operation.call),
            ": the ranges overlap, and this rank's part is not in its place in the whole");
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
