#pragma once

#include <reigen/core/types.hpp>

#include <Eigen/Core>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__GNUC__) || defined(__clang__)
#define REIGEN_INLINE inline __attribute__((always_inline))
#define REIGEN_INLINE_LAMBDA __attribute__((always_inline))
#else
#define REIGEN_INLINE inline
#define REIGEN_INLINE_LAMBDA
#endif

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The widest vector Eigen has here for float or double; the scalar itself where Eigen does not vectorise.
template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;

/// Elements in a `Packet<T>`.
template <class T>
inline constexpr int lanes = Eigen::internal::unpacket_traits<Packet<T>>::size;

/// Packets needed for `columns` columns, the last one perhaps not full.
template <class T>
constexpr Index packets_for(Index columns) {
    return (columns + lanes<T> - 1) / lanes<T>;
}

/// Elements of a row that is filled up to whole packets.
template <class T>
constexpr Index padded(Index columns) {
    return packets_for<T>(columns) * lanes<T>;
}

/// How many packets the processor can name at once.
inline constexpr int packet_registers =
#if defined(__AVX512F__) || defined(__aarch64__)
    32;
#else
    16;
#endif

/// Calls f with the constants 0, ..., Count - 1, so that arrays indexed by them stay in registers at any -O level.
template <int Count, class F>
REIGEN_INLINE void unrolled(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>)
        REIGEN_INLINE_LAMBDA { (f(std::integral_constant<int, I>{}), ...); }(std::make_integer_sequence<int, Count>{});
}

/// a b + c in one rounding wherever the processor has the instruction. Never left to the compiler's contraction, so a
/// value does not depend on which loop computed it.
template <class T>
REIGEN_INLINE Packet<T> multiply_add(const Packet<T>& a, const Packet<T>& b, const Packet<T>& c) {
    if constexpr (lanes<T> == 1) {
#if defined(FP_FAST_FMA) && defined(FP_FAST_FMAF) || defined(__FMA__)
        return std::fma(a, b, c);
#else
        return a * b + c;
#endif
    } else {
        return Eigen::internal::pmadd(a, b, c);
    }
}

template <class T>
REIGEN_INLINE Packet<T> broadcast(const T& value) {
    return Eigen::internal::pset1<Packet<T>>(value);
}

/// As many bfloat16 as a packet has floats, widened in two instructions. Element by element, g++ 12 takes about 30 with
/// AVX2 and 70 with AVX-512.
REIGEN_INLINE Packet<float> widen(const bfloat16* from) {
    using Narrow [[gnu::vector_size(2 * lanes<float>)]] = std::uint16_t;
    using Wide [[gnu::vector_size(4 * lanes<float>)]] = std::uint32_t;
    Narrow upper_halves;
    std::memcpy(&upper_halves, from, sizeof upper_halves);
    const Wide bits = __builtin_convertvector(upper_halves, Wide) << 16;
    Packet<float> packet;
    std::memcpy(&packet, &bits, sizeof packet);
    return packet;
}

/// The first `count` elements of a packet, `stride` apart in memory; the other lanes are 0.
template <class T, class From>
REIGEN_INLINE Packet<T> load_some(const From* from, Index stride, int count) {
    T wide[lanes<T>] = {};
    for (int lane = 0; lane < count; ++lane)
        wide[lane] = T(from[lane * stride]);
    return Eigen::internal::ploadu<Packet<T>>(wide);
}

/// A packet from memory of any alignment, which costs nothing where the memory happens to be aligned; bfloat16 is
/// widened.
template <class T, class From>
REIGEN_INLINE Packet<T> load(const From* from) {
    if constexpr (std::is_same_v<T, From>)
        return Eigen::internal::ploadu<Packet<T>>(from);
    else if constexpr (std::is_same_v<T, float>)
        return widen(from);
    else
        return load_some<T>(from, 1, lanes<T>);
}

template <class T>
REIGEN_INLINE void store(T* to, const Packet<T>& packet) {
    Eigen::internal::pstoreu(to, packet);
}

/// Makes the compiler hold a packet in a register. Where instructions may read a factor from memory of any alignment,
/// g++ 12 loads the right factor again for every row of a tile: 16 loads for the 12 multiply-adds of a 4x3 tile, not 7,
/// and a Zen 3 loads two packets a cycle. Attention, forward and backward, is 1.15 to 1.4 times as fast for it.
template <class PacketType>
REIGEN_INLINE void hold_in_register([[maybe_unused]] PacketType& packet) {
#if defined(__AVX__)
    asm("" : "+v"(packet));
#endif
}

/// Writes the first `count` lanes, `stride` apart.
template <class T>
REIGEN_INLINE void store_some(T* to, Index stride, int count, const Packet<T>& packet) {
    T all[lanes<T>];
    store(all, packet);
    for (int lane = 0; lane < count; ++lane)
        to[lane * stride] = all[lane];
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
