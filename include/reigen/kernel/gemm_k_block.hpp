#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/multiplicand.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Elements of k that one chain of multiply-adds covers: sums over k = [0, block), [block, 2 block), ... are taken from
/// zero each and added in order. A product cut into whole k-blocks is therefore summed as the uncut one.
///
/// The rounding error of a sum grows as the root of the block: with 384 floats, a chain as long as what is packed, it is
/// up to twice that of Intel's MKL at 2048^3; with 128 it is as small as the best of four other libraries', and such a
/// product takes 1.5 to 2% longer. With 256 doubles it is theirs already.
/// A tile of AMX adds the sum of 32 products to its own: chains of 1024 bfloat16 have no more links than 64.
template <class T>
inline constexpr Index gemm_k_block = sizeof(Accumulator<T>) == 8 ? 256
                                      : detail::in_tiles<detail::Multiplicand<std::remove_const_t<T>>>
                                          ? 1024
                                          : 128 * detail::k_in<detail::Multiplicand<std::remove_const_t<T>>>;

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
