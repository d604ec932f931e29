#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/packet.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

/// A packet of sums into bfloat16, as round_to_bfloat16 rounds each.
REIGEN_INLINE void store_rounded(const void* floats, bfloat16* to) {
    using Words [[gnu::vector_size(4 * lanes<float>)]] = std::uint32_t;
    using Halves [[gnu::vector_size(2 * lanes<float>)]] = std::uint16_t;
    Words bits;
    std::memcpy(&bits, floats, sizeof bits);
    const Words nearest = bits + 0x7fff + ((bits >> 16) & 1), quiet = bits | 0x00400000;
    const Words rounded = ((bits & 0x7fffffff) > 0x7f800000 ? quiet : nearest) >> 16;
    const Halves halves = __builtin_convertvector(rounded, Halves);
    std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}
template <class T>
REIGEN_INLINE void store(bfloat16* to, const Packet<T>& packet) {
    static_assert(std::is_same_v<T, float>);
    store_rounded(&packet, to);
}

/// The first `count` lanes, `stride` apart, rounded.
template <class T>
void store_some(bfloat16* to, Index stride, int count, const Packet<T>& packet) {
    T all[lanes<T>];
    store(all, packet);
    for (int lane = 0; lane < count; ++lane)
        to[lane * stride] = round_to_bfloat16(all[lane]);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
