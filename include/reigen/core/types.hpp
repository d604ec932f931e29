#pragma once

#include <reigen/core/instruction_set.hpp>

#include <Eigen/Core>

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Sizes, indices and counts; never `int`.
using Index = Eigen::Index;

/// 16-bit storage with float's exponent. Sums are always taken in float.
using bfloat16 = Eigen::bfloat16;

namespace detail {
template <class Scalar>
struct AccumulatorOf {
    using type = Scalar;
};
template <>
struct AccumulatorOf<bfloat16> {
    using type = float;
};
} // namespace detail

/// The type in which sums of `Scalar` are held: itself, and float for bfloat16.
template <class Scalar>
using Accumulator = typename detail::AccumulatorOf<std::remove_const_t<Scalar>>::type;

/// Tokens x features, as the library allocates them.
template <class Scalar>
using RowMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A set of mesh axes: data, pipeline, context (sequence), tensor and expert parallel.
enum class Axes : std::uint8_t { none = 0, dp = 1, pp = 2, cp = 4, tp = 8, ep = 16 };

inline constexpr Axes dp = Axes::dp;
inline constexpr Axes pp = Axes::pp;
inline constexpr Axes cp = Axes::cp;
inline constexpr Axes tp = Axes::tp;
inline constexpr Axes ep = Axes::ep;

/// All axes, in the order of their bits.
inline constexpr Axes all_axes[] = {dp, pp, cp, tp, ep};

constexpr Axes operator|(Axes a, Axes b) {
    return Axes(std::uint8_t(a) | std::uint8_t(b));
}

constexpr Axes operator&(Axes a, Axes b) {
    return Axes(std::uint8_t(a) & std::uint8_t(b));
}

/// The axes of a that are not in b.
constexpr Axes operator-(Axes a, Axes b) {
    return Axes(std::uint8_t(a) & ~std::uint8_t(b));
}

constexpr Axes& operator|=(Axes& a, Axes b) {
    return a = a | b;
}

constexpr bool disjoint(Axes a, Axes b) {
    return (a & b) == Axes::none;
}

/// Whether every axis of `some` is in `all`.
constexpr bool contains(Axes all, Axes some) {
    return (all & some) == some;
}

constexpr int count(Axes axes) {
    return std::popcount(std::uint8_t(axes));
}

/// "dp|tp", or "none".
inline std::string to_string(Axes axes) {
    constexpr const char* names[] = {"dp", "pp", "cp", "tp", "ep"};
    std::string text;
    for (int bit = 0; bit < 5; ++bit)
        if (contains(axes, all_axes[bit]))
            text.append(text.empty() ? "" : "|").append(names[bit]);
    return text.empty() ? "none" : text;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
