#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/core/types.hpp>

#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// What a product multiplies in one step along k: a number in the type of the sums, or two bfloat16 where the processor
// has an instruction that multiplies two pairs and adds both products to a float, at twice float's rate.

/// Two bfloat16 that are neighbours along k.
struct BFloat16Pair {
    bfloat16 first = bfloat16(0);
    bfloat16 second = bfloat16(0);
};

inline constexpr bool multiplies_pairs =
#if defined(REIGEN_BFLOAT16_PAIRS)
    true;
#else
    false;
#endif

/// What products of S multiply.
template <class S>
using Multiplicand = std::conditional_t<std::is_same_v<S, bfloat16> && multiplies_pairs, BFloat16Pair, Accumulator<S>>;

/// Elements along k in one of them.
template <class M>
inline constexpr Index k_in = std::is_same_v<M, BFloat16Pair> ? 2 : 1;

/// How a factor that is packed once holds them: bfloat16 is not widened before it is multiplied.
template <class S>
using StoredMultiplicand = std::conditional_t<std::is_same_v<S, bfloat16> && multiplies_pairs, BFloat16Pair, S>;

/// The type in which their products are summed.
template <class M>
using SumOf = Accumulator<std::conditional_t<std::is_same_v<M, BFloat16Pair>, bfloat16, M>>;

/// Steps along k, the last one filled up with zeros.
template <class M>
constexpr Index steps_in(Index k) {
    return (k + k_in<M> - 1) / k_in<M>;
}

/// Whether M is multiplied by AMX, in tiles of 16 steps.
template <class M>
inline constexpr bool in_tiles =
#if defined(REIGEN_AMX)
    std::is_same_v<M, BFloat16Pair>;
#else
    false;
#endif

/// Steps filled up to whole tiles, where it is tiles that are multiplied.
template <class M>
constexpr Index whole_steps(Index steps) {
    return in_tiles<M> ? (steps + 15) / 16 * 16 : steps;
}

/// Step `step` of column j of a right factor [k, n]; of a left one, transposed, of row j.
template <class M, class From>
M multiplicand(const Strided<const From>& factor, Index step, Index j) {
    if constexpr (std::is_same_v<M, BFloat16Pair>)
        return {factor(2 * step, j), 2 * step + 1 < factor.rows ? factor(2 * step + 1, j) : bfloat16(0)};
    else
        return M(factor(step, j));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
