#pragma once

#include <reigen/comm/mpi/levels/all_gather.hpp>
#include <reigen/comm/mpi/levels/all_reduce.hpp>
#include <reigen/comm/mpi/levels/broadcast.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Whether a collective goes over both levels. A sum of bfloat16 is rounded once, and a reduce_scatter sums in rank order
/// over all nodes, in the bits of the products that overlap their own sum.
inline bool has_two_levels(const Levels& levels, const Operation& operation) {
    switch (operation.call) {
    case Call::all_reduce:
        return operation.type != DataType::bf16;
    case Call::all_gather:
        return levels.numbered_by_node;
    case Call::broadcast:
        return operation.out_size * size_of(operation.type) >= TwoLevelBroadcast::least_bytes;
    default:
        return false;
    }
}

inline std::unique_ptr<Started> start_on_two_levels(Levels& levels, const Operation& operation) {
    const LevelsTraffic traffic = {levels.in_node->rank(), levels.node_ranks(), levels.across->rank(), levels.nodes()};
    if (operation.call == Call::all_reduce)
        return std::make_unique<TwoLevelAllReduce>(levels, operation, traffic);
    if (operation.call == Call::broadcast) {
        const auto root = std::ranges::find(levels.by_node, operation.peer) - levels.by_node.begin();
        return std::make_unique<TwoLevelBroadcast>(levels, operation, int(root), traffic);
    }
    auto parts = parts_of(operation, operation.out_size, int(levels.by_node.size()));
    return std::make_unique<TwoLevelAllGather>(levels, operation, std::move(parts), traffic);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
