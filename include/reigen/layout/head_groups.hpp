#pragma once

#include <reigen/layout/partition.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Which attention heads each rank holds, where several query heads share one K/V head (grouped heads).
///
/// While there are K/V heads for all ranks, each rank gets whole groups: some K/V heads and all their query heads.
/// With more ranks than K/V heads, the ranks of one K/V head share its query heads, and each of them holds the K/V
/// head: those partitions overlap. Either way a rank's query heads share its K/V heads evenly, so that local query
/// head h reads local K/V head h / (local query heads / local K/V heads). A rank without query heads has none of both.
///
///     8 query heads on 2 K/V heads:   2 ranks  q0-3 k0 | q4-7 k1     3 ranks  q0-1 k0 | q2-3 k0 | q4-7 k1
struct HeadGroups {
    Index query_heads = 1;
    Index kv_heads = 1;

    /// Query heads to a K/V head.
    Index group() const {
        require<ShapeError>(kv_heads >= 1 && query_heads >= kv_heads && query_heads % kv_heads == 0,
                            "HeadGroups: ", query_heads, " query heads do not share ", kv_heads, " K/V heads evenly");
        return query_heads / kv_heads;
    }

    Range query(int ranks, int rank) const {
        require(rank >= 0 && rank < ranks, "HeadGroups: rank ", rank, " of ", ranks);
        if (const Index queries_of_one = group(); ranks <= kv_heads) {
            const Range whole = balanced_range(kv_heads, ranks, rank);
            return {whole.first * queries_of_one, whole.count * queries_of_one};
        }
        const Index g = group_of(ranks, rank);
        const Index first_rank = first_rank_of(ranks, g);
        const Range share =
            balanced_range(group(), int(first_rank_of(ranks, g + 1) - first_rank), int(rank - first_rank));
        return {g * group() + share.first, share.count};
    }

    Range kv(int ranks, int rank) const {
        const Range mine = query(ranks, rank);
        return {mine.first / group(), (mine.count + group() - 1) / group()};
    }

    /// Columns of the query heads, `head_dim` of them a head; those of the attention's output as well.
    Partition query_partition(int ranks, Index head_dim) const {
        return partition(query_heads, ranks, head_dim, &HeadGroups::query);
    }

    Partition kv_partition(int ranks, Index head_dim) const {
        return partition(kv_heads, ranks, head_dim, &HeadGroups::kv);
    }

  private:
    Index group_of(int ranks, Index rank) const { return rank * kv_heads / ranks; }
    Index first_rank_of(int ranks, Index group) const { return (group * ranks + kv_heads - 1) / kv_heads; }

    Partition partition(Index all, int ranks, Index head_dim, Range (HeadGroups::*heads)(int, int) const) const {
        require(ranks >= 1 && head_dim >= 1, "HeadGroups: heads of ", head_dim, " columns over ", ranks, " ranks");
        const Index size = detail::product_of_sizes(all, head_dim, "HeadGroups");
        std::vector<Runs> runs;
        for (int rank = 0; rank < ranks; ++rank) {
            const Range mine = (this->*heads)(ranks, rank);
            runs.push_back(Runs::range(mine.first * head_dim, mine.count * head_dim));
        }
        return Partition::of_runs(size, std::move(runs));
    }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
