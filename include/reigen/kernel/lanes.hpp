#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/exp.hpp>
#include <reigen/kernel/packet.hpp>
#include <reigen/kernel/packet_math.hpp>

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
    return {larger<T>(a.packet, b.packet)};
}

template <class T>
REIGEN_INLINE Lanes<T> square_root(Lanes<T> a) {
    return {Eigen::internal::psqrt(a.packet)};
}

/// Beyond it e^-a is not a normal number, and e^a not far from infinity.
template <class T>
inline constexpr T largest_exponent = std::numeric_limits<T>::digits > 24 ? T(709) : T(88);

/// Whether `fused` rounds once.
inline constexpr bool has_fused_multiply_add =
#if defined(__FMA__) || defined(__aarch64__)
    true;
#else
    false;
#endif

/// A number cut into two of half its digits each, whose products are exact.
template <class Number>
struct Halves {
    Number high;
    Number low;

    Halves(Number number, Number splitter)
        : high(number * splitter - (number * splitter - number)), low(number - high) {}
};

/// x y - product, what rounding took from the product x y.
///
/// Source  without a fused multiply-add: Dekker, "A floating-point technique for extending the available precision",
///         Numerische Mathematik 18, 1971
template <class T>
REIGEN_INLINE Lanes<T> product_error(Lanes<T> x, Lanes<T> y, Lanes<T> product) {
    if constexpr (has_fused_multiply_add) {
        return fused(x, y, Lanes<T>::all(0) - product);
    } else {
        const auto splitter = Lanes<T>::all(sizeof(T) == 4 ? T(4097) : T(134217729));
        const Halves<Lanes<T>> a(x, splitter), b(y, splitter);
        return a.low * b.low + (a.low * b.high + (a.high * b.low + (a.high * b.high - product)));
    }
}

/// e^a for a <= largest_exponent; exactly 0 below -largest_exponent, at -infinity too; NaN for NaN. a log2(e) is taken
/// in two parts, so that the error does not grow with a.
template <class T>
REIGEN_INLINE Lanes<T> exp(Lanes<T> a) {
    constexpr double log2_e = 1.44269504088896340736;
    constexpr double log2_e_rest = sizeof(T) == 4 ? log2_e - double(float(log2_e)) : 2.0355273740931033e-17;
    constexpr double ln_2 = 0.693147180559945309417;
    const auto x = max(a, Lanes<T>::all(-largest_exponent<T>));
    const auto t = x * Lanes<T>::all(T(log2_e));
    const auto rest = product_error(x, Lanes<T>::all(T(log2_e)), t);
    const auto small = fused(x, Lanes<T>::all(T(log2_e_rest)), rest) * Lanes<T>::all(T(ln_2));
    const Lanes<T> power = {exp2<T>(t.packet)};
    return fused(power, small, power);
}

/// 1 / (1 + e^-a)
template <class T>
REIGEN_INLINE Lanes<T> sigmoid(Lanes<T> a) {
    const auto one = Lanes<T>::all(1);
    return one / (one + exp(Lanes<T>::all(0) - max(a, Lanes<T>::all(-largest_exponent<T>))));
}

/// The lanes of one packet folded in halves: a fixed order.
template <class T, class Fold>
REIGEN_INLINE T fold_lanes(Lanes<T> a, Fold fold) {
    T values[Lanes<T>::size];
    a.store(values);
    for (Index half = Lanes<T>::size / 2; half > 0; half /= 2)
        for (Index lane = 0; lane < half; ++lane)
            values[lane] = fold(values[lane], values[lane + half]);
    return values[0];
}

template <class T>
REIGEN_INLINE T sum_of_lanes(Lanes<T> a) {
    return fold_lanes(a, [](T x, T y) { return x + y; });
}

template <class T>
REIGEN_INLINE T max_of_lanes(Lanes<T> a) {
    return fold_lanes(a, [](T x, T y) { return x < y ? y : x; });
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
