#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/packet.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

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

inline void round_row(const float* from, bfloat16* to, Index count) {
    for (Index i = 0; i < count; ++i)
        to[i] = round_to_bfloat16(from[i]);
}

/// Through memory, since g++ 12 makes no vectors of a loop that takes a bfloat16 apart.
inline void widen_row(const bfloat16* from, float* to, Index count) {
    for (Index i = 0; i < count; ++i) {
        std::uint16_t upper_half;
        std::memcpy(&upper_half, from + i, sizeof upper_half);
        to[i] = std::bit_cast<float>(std::uint32_t(upper_half) << 16);
    }
}

/// A row that need not be widened.
template <class T>
void widen_row(const T* from, T* to, Index count) {
    std::copy_n(from, count, to);
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
