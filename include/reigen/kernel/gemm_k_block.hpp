#pragma once

#include <reigen/core/types.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Elements of k that one chain of multiply-adds covers: sums over k = [0, block), [block, 2 block), ... are taken from
/// zero each and added in order. A product cut into whole k-blocks is therefore summed as the uncut one.
///
/// At 384 float (256 double) a tile of A is 12 KB (16 KB) of the first-level cache, and C is read and written once in
/// 4600 cycles a tile.
template <class T>
inline constexpr Index gemm_k_block = sizeof(Accumulator<T>) == 8 ? 256 : 384;

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
