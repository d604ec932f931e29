#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/multiplicand.hpp>
#include <reigen/kernel/packet.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Multiplicands a packet at a time: as many as a packet of sums has lanes. Of numbers this is what packet.hpp does; of
// pairs, which follow below, instructions of their own.

template <class M>
struct MultiplicandPacketOf {
    using type = Packet<M>;
};
template <class M>
using MultiplicandPacket = typename MultiplicandPacketOf<M>::type;

template <class M>
REIGEN_INLINE MultiplicandPacket<M> broadcast_multiplicand(const M& value) {
    return broadcast<M>(value);
}

/// A packet of multiplicands that lie one after the other, perhaps in a narrower type.
template <class M, class Stored>
REIGEN_INLINE MultiplicandPacket<M> load_multiplicands(const Stored* from) {
    return load<M>(from);
}

/// The same step of neighbouring columns, which are contiguous in memory.
template <class M, class From>
REIGEN_INLINE MultiplicandPacket<M> load_step(const Strided<const From>& factor, Index step, Index column) {
    return load<M>(factor.data + step * factor.row_stride + column);
}

template <class M>
REIGEN_INLINE void store_multiplicands(M* to, const MultiplicandPacket<M>& packet) {
    store<M>(to, packet);
}

/// Steps that follow each other in memory, as bits of packets that can be shuffled.
template <class M, class From>
REIGEN_INLINE Packet<SumOf<M>> load_along_k(const From* from) {
    if constexpr (std::is_same_v<M, BFloat16Pair>)
        return load<float>(reinterpret_cast<const float*>(from));
    else
        return load<M>(from);
}
template <class M>
REIGEN_INLINE void store_bits(M* to, const Packet<SumOf<M>>& bits) {
    store<SumOf<M>>(reinterpret_cast<SumOf<M>*>(to), bits);
}

/// Numbers of neighbouring k as one step, rounded where they are pairs.
template <class M>
REIGEN_INLINE MultiplicandPacket<M> step_of(const Packet<SumOf<M>> (&numbers)[k_in<M>]) {
    return numbers[0];
}

/// A step of which only those elements along k are left that a lane sees: where `seen`, a packet for each of them, is
/// 0, there is 0, whatever stood there.
template <class M>
REIGEN_INLINE MultiplicandPacket<M> seen_part(const MultiplicandPacket<M>& step,
                                              const Packet<SumOf<M>> (&seen)[k_in<M>]) {
    const Packet<M> zero = broadcast<M>(0);
    return Eigen::internal::pselect(Eigen::internal::pcmp_eq(seen[0], zero), zero, step);
}

/// A row of numbers as steps along it, rounded where they are pairs.
template <class M>
REIGEN_INLINE void store_along_k(M* to, const Packet<SumOf<M>>& numbers) {
    store<M>(to, numbers);
}

/// Contiguous elements along k as steps.
template <class M, class From>
void pack_steps(const From* from, M* to, Index k) {
    if constexpr (std::is_same_v<M, BFloat16Pair>) {
        std::memcpy(static_cast<void*>(to), from, std::size_t(k) * sizeof(From));
        if (k % 2 != 0)
            to[k / 2].second = bfloat16(0);
    } else {
        widen_row<M>(from, to, k);
    }
}

#if defined(REIGEN_BFLOAT16_PAIRS)

using PairPacket [[gnu::vector_size(4 * lanes<float>)]] = std::uint32_t;

template <>
struct MultiplicandPacketOf<BFloat16Pair> {
    using type = PairPacket;
};

template <>
REIGEN_INLINE PairPacket broadcast_multiplicand<BFloat16Pair>(const BFloat16Pair& value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return PairPacket{} | bits;
}

template <>
REIGEN_INLINE PairPacket load_multiplicands<BFloat16Pair>(const BFloat16Pair* from) {
    PairPacket packet;
    std::memcpy(&packet, from, sizeof packet);
    return packet;
}

/// Two packets of bfloat16 as pairs: those of `first` below those of `second`.
REIGEN_INLINE PairPacket pair_up(const void* first, const void* second) {
    using Row [[gnu::vector_size(2 * lanes<float>)]] = std::uint16_t;
    Row low, high;
    std::memcpy(&low, first, sizeof low);
    std::memcpy(&high, second, sizeof high);
    return __builtin_convertvector(low, PairPacket) | __builtin_convertvector(high, PairPacket) << 16;
}

template <>
REIGEN_INLINE PairPacket load_step<BFloat16Pair, bfloat16>(const Strided<const bfloat16>& factor, Index step,
                                                           Index column) {
    static constexpr std::uint16_t zeros[lanes<float>] = {};
    const bfloat16* const first = factor.data + 2 * step * factor.row_stride + column;
    return 2 * step + 1 < factor.rows ? pair_up(first, first + factor.row_stride) : pair_up(first, zeros);
}

template <>
REIGEN_INLINE void store_multiplicands<BFloat16Pair>(BFloat16Pair* to, const PairPacket& packet) {
    std::memcpy(static_cast<void*>(to), &packet, sizeof packet);
}

/// The same as bfloat16, in lanes of 16 bits.
using PairHalves [[gnu::vector_size(4 * lanes<float>)]] = std::uint16_t;

template <>
REIGEN_INLINE PairPacket step_of<BFloat16Pair>(const Packet<float> (&numbers)[2]) {
    const auto rounded = _mm512_cvtne2ps_pbh(numbers[1], numbers[0]); // the first ones in the lower half
    PairHalves halves;
    std::memcpy(&halves, &rounded, sizeof halves);
    halves = __builtin_shufflevector(halves, halves, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9,
                                     25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    PairPacket pairs;
    std::memcpy(&pairs, &halves, sizeof pairs);
    return pairs;
}

template <>
REIGEN_INLINE PairPacket seen_part<BFloat16Pair>(const PairPacket& step, const Packet<float> (&seen)[2]) {
    PairPacket first, second;
    std::memcpy(&first, &seen[0], sizeof first);
    std::memcpy(&second, &seen[1], sizeof second);
    const auto low = PairPacket(first != 0) & 0xffffu, high = PairPacket(second != 0) & 0xffff0000u;
    return step & (low | high);
}

template <>
REIGEN_INLINE void store_along_k<BFloat16Pair>(BFloat16Pair* to, const Packet<float>& numbers) {
    const auto rounded = _mm512_cvtneps_pbh(numbers);
    std::memcpy(static_cast<void*>(to), &rounded, sizeof rounded);
}

/// The first, or second, ones of pairs as numbers.
REIGEN_INLINE Packet<float> first_of_pairs(const PairPacket& pairs) {
    const PairPacket bits = pairs << 16;
    Packet<float> numbers;
    std::memcpy(&numbers, &bits, sizeof bits);
    return numbers;
}
REIGEN_INLINE Packet<float> second_of_pairs(const PairPacket& pairs) {
    const PairPacket bits = pairs & 0xffff0000u;
    Packet<float> numbers;
    std::memcpy(&numbers, &bits, sizeof bits);
    return numbers;
}

/// sum + first first + second second, lane by lane.
///
/// Order   as the instruction rounds; subnormal numbers count as 0
template <class T>
REIGEN_INLINE Packet<T> multiply_add(const PairPacket& a, const PairPacket& b, const Packet<T>& sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

#endif

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
