#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/packet.hpp>

#include <bit>
#include <cstdint>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The nearest bfloat16, the even one of two equally near; NaN stays a NaN. Without branches, so that loops over it
/// become vectors: Eigen's conversion takes as long as a sixth of a 512^3 product.
inline bfloat16 round_to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = bits + 0x7fff + ((bits >> 16) & 1);
    const std::uint32_t quiet = bits | 0x00400000;
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return std::bit_cast<bfloat16>(std::uint16_t((is_nan ? quiet : nearest) >> 16));
}

template <class From>
void round_row(const From* from, bfloat16* to, Index count) {
    for (Index i = 0; i < count; ++i)
        to[i] = round_to_bfloat16(float(from[i]));
}

/// A copy of contiguous elements in the type that is computed in.
template <class T, class From>
void widen_row(const From* from, T* to, Index count) {
    Index i = 0;
    for (; i + lanes<T> <= count; i += lanes<T>)
        store<T>(to + i, load<T>(from + i));
    for (; i < count; ++i)
        to[i] = T(from[i]);
}

/// A packet of sums into bfloat16, rounded.
template <class T>
void store(bfloat16* to, const Packet<T>& packet) {
    T all[lanes<T>];
    store(all, packet);
    round_row(all, to, lanes<T>);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
