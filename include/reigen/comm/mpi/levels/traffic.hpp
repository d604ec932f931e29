#pragma once

#include <reigen/comm/collectives/cost.hpp>
#include <reigen/comm/collectives/schedule.hpp>

#include <cstddef>
#include <span>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The parts of a node's ranks, of those of all ranks, one node after the other.
inline std::span<const Index> parts_on(std::span<const Index> parts, int node, int node_ranks) {
    const auto ranks = std::size_t(node_ranks);
    return parts.subspan(std::size_t(node) * ranks, ranks);
}

/// What one rank sends in the collectives over two levels, by their schedules.
struct LevelsTraffic {
    int rank = 0; // in its node
    int node_ranks = 1;
    int node = 0;
    int nodes = 1;

    Traffic of_all_reduce(Index count, Index element_bytes) const {
        const auto slices = balanced_parts(count, node_ranks);
        const Index mine = slices[std::size_t(rank)];
        return sends_of_parts(slices, rank, element_bytes) + sends_of_all_reduce(mine, node, nodes, element_bytes) +
               sends_of_equal_parts(mine, node_ranks, element_bytes);
    }

    /// `parts`: of each rank of the group, of which those of a node follow each other.
    Traffic of_all_gather(std::span<const Index> parts, Index element_bytes) const {
        const auto own = parts_on(parts, node, node_ranks)[std::size_t(rank)];
        Traffic sent = sends_of_equal_parts(own, node_ranks, element_bytes);
        for (int n = 0; n < nodes; ++n) {
            const Index block = sum_of(parts_on(parts, n, node_ranks));
            const Index slice = balanced_parts(block, node_ranks)[std::size_t(rank)];
            sent = sent + sends_of_equal_parts(slice, n == node ? nodes : node_ranks, element_bytes);
        }
        return sent;
    }

    /// `root`: number of the group's rank in the numbering by nodes.
    Traffic of_broadcast(Index count, int root, Index element_bytes) const {
        const Index slice = balanced_parts(count, node_ranks)[std::size_t(rank)];
        const int root_node = root / node_ranks;
        return sends_of_broadcast(slice * element_bytes, node, nodes, root_node) +
               (node == root_node ? sends_of_broadcast(count * element_bytes, rank, node_ranks, root % node_ranks)
                                  : sends_of_equal_parts(slice, node_ranks, element_bytes));
    }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
