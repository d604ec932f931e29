#pragma once

#include <reigen/core/wire_type.hpp>
#include <reigen/kernel/packed_weight.hpp>
#include <reigen/layout/partition.hpp>
#include <reigen/layout/redistribution_steps.hpp>
#include <reigen/layout/sharded.hpp>

#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Rows that a product needs on average to be worth a step of its own, since each step reads all of the right factor.
/// 256 rows times 1024x2048 floats take 1.07 times as long in four steps as at once, and 1.04 times in two; 512 rows
/// 1.04 times in eight, as long in four.
inline constexpr Index fewest_rows_a_step = 64;

/// The right factor of products over some rows after the other, packed for all of them. If each packed it anew, 256 rows
/// would take 1.25 times as long in four steps, 512 rows 1.09 times.
template <class B>
decltype(auto) packed_factor(const B& b) {
    if constexpr (ShardedLike<B>)
        return PackedWeight<ScalarOf<B>>(b.strided(), MemoryUse::workspace);
    else
        return b.local();
}

/// The rows of `whole` that each rank of the group has of `cut`, the same matrix with its rows divided over the group as
/// well. None where a product is better not cut by them: for lack of rows, where they do not lie rank after rank, or
/// where ranks read each other's memory. There a collective is copying, which cannot be hidden: on two cores an MLP's step
/// of 512 tokens took 1.10 times as long in steps. The same on every rank of the group.
inline std::vector<Range> row_blocks(const ShardSpec& whole, const ShardSpec& cut, Axes group) {
    const int ranks = whole.mesh.size(group);
    if (ranks == 1 || whole.mesh[group].backend()->reads_in_place() ||
        whole.local_rows() < fewest_rows_a_step * ranks || !redistribution::is_concatenation(whole, cut, group))
        return {};
    std::vector<Range> blocks;
    for (int q = 0; q < ranks; ++q)
        blocks.push_back({q == 0 ? 0 : blocks.back().end(), cut.row_runs(group, q).size()});
    return blocks;
}

template <class T>
Strided<T> rows_of_block(const Strided<T>& matrix, const Range& rows) {
    return matrix.block(rows.first, 0, rows.count, matrix.cols);
}

/// Has the ranks compare, where they compare, what decides which of them sends what.
inline void agree_on_product(const char* call, const Communicator& ranks, const ShardSpec& a, const ShardSpec& b,
                             WireType wire = WireType::unchanged) {
    ranks.agree(call, [&] {
        return std::vector<Field>{{"a", shape(a.rows(), a.cols())},
                                  {"b", shape(b.rows(), b.cols())},
                                  {"placed", concat(to_string(a.placement), " and ", to_string(b.placement))},
                                  {"wire", to_string(wire)}};
    });
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
