#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/packet.hpp>

#include <algorithm>
#include <limits>

// GCC 12 takes the undefined operand of unmasked AVX-512 intrinsics for a variable used before it was set (its bug
// 105593), at every place they are inlined into.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// A packet with the operators that loops over rows need.
///
/// A product that feeds a sum is written `fused(a, b, c)`, so that bits do not depend on the compiler's contraction.
/// Partial loads are padded, so that an element's bits do not depend on where it lies in its row.
template <class T>
struct Lanes {
    static constexpr Index size = lanes<T>;

    Packet<T> packet;

    static Lanes all(T value) { return {broadcast(value)}; }
    static Lanes load(const T* from) { return {detail::load<T>(from)}; }

    /// The first `count` lanes from memory, `padding` in the others.
    static Lanes load(const T* from, Index count, T padding = T(0)) {
        if (count >= size)
            return load(from);
        T full[size];
        std::fill(std::copy_n(from, count, full), full + size, padding);
        return load(full);
    }

    void store(T* to) const { detail::store(to, packet); }

    void store(T* to, Index count) const {
        if (count >= size)
            return store(to);
        T full[size];
        store(full);
        std::copy_n(full, count, to);
    }

    friend Lanes operator+(Lanes a, Lanes b) { return {Eigen::internal::padd(a.packet, b.packet)}; }
    friend Lanes operator-(Lanes a, Lanes b) { return {Eigen::internal::psub(a.packet, b.packet)}; }
    friend Lanes operator*(Lanes a, Lanes b) { return {Eigen::internal::pmul(a.packet, b.packet)}; }
    friend Lanes operator/(Lanes a, Lanes b) { return {Eigen::internal::pdiv(a.packet, b.packet)}; }
};

/// a b + c
template <class T>
REIGEN_INLINE Lanes<T> fused(Lanes<T> a, Lanes<T> b, Lanes<T> c) {
    return {multiply_add<T>(a.packet, b.packet, c.packet)};
}

template <class T>
REIGEN_INLINE Lanes<T> max(Lanes<T> a, Lanes<T> b) {
    return {Eigen::internal::pmax(a.packet, b.packet)};
}

template <class T>
REIGEN_INLINE Lanes<T> square_root(Lanes<T> a) {
    return {Eigen::internal::psqrt(a.packet)};
}

/// e^a; exactly 0 where the result would not be a normal number (Eigen's own stays above 0 at -infinity).
template <class T>
REIGEN_INLINE Lanes<T> exp(Lanes<T> a) {
    const auto lowest = Lanes<T>::all(std::numeric_limits<T>::digits > 24 ? T(-708) : T(-87));
    const auto is_too_low = Eigen::internal::pcmp_lt(a.packet, lowest.packet);
    return {Eigen::internal::pselect(is_too_low, Lanes<T>::all(0).packet, Eigen::internal::pexp(a.packet))};
}

/// 1 / (1 + e^-a)
template <class T>
REIGEN_INLINE Lanes<T> sigmoid(Lanes<T> a) {
    const auto one = Lanes<T>::all(1);
    return one / (one + exp(Lanes<T>::all(0) - a));
}

template <class T>
REIGEN_INLINE T sum_of_lanes(Lanes<T> a) {
    return Eigen::internal::predux(a.packet);
}

template <class T>
REIGEN_INLINE T max_of_lanes(Lanes<T> a) {
    return Eigen::internal::predux_max(a.packet);
}

/// Folds a row into a sum: add(sum, first, count) gives the sum with `count` elements from `first` on added to its
/// lanes.
///
/// Order   four running sums, added pairwise at the end; a function of `count` alone
template <class T, class Add>
REIGEN_INLINE T sum_over_row(Index count, Add add) {
    constexpr Index width = Lanes<T>::size;
    Lanes<T> sums[4] = {Lanes<T>::all(0), Lanes<T>::all(0), Lanes<T>::all(0), Lanes<T>::all(0)};
    Index i = 0;
    for (; i + 4 * width <= count; i += 4 * width)
        unrolled<4>([&](auto s) { sums[s] = add(sums[s], i + s * width, width); });
    for (Index s = 0; i < count; i += width, ++s)
        sums[s] = add(sums[s], i, std::min(width, count - i));
    return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// Calls body(first, count) for each register of a row, the last one with fewer elements.
template <class T, class Body>
REIGEN_INLINE void for_each_register(Index count, Body body) {
    constexpr Index width = Lanes<T>::size;
    Index i = 0;
    for (; i + width <= count; i += width)
        body(i, width);
    if (i < count)
        body(i, count - i);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
