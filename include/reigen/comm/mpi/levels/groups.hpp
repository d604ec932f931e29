#pragma once

#include <reigen/comm/backend/backend.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The groups in which a rank takes part where a group runs on several machines, as many ranks on each.
///
///     node 0   rank 0  1  2        in_node   0 1 2       3 4 5
///     node 1   rank 3  4  5        across    0 3   1 4   2 5
struct Levels {
    std::shared_ptr<Backend> in_node; // whose ranks share memory
    std::shared_ptr<Backend> across;  // one rank of each node, in the order of the nodes
    std::vector<int> by_node;         // the group's ranks, one node after the other
    bool numbered_by_node = true; // whether that is their order, so that what the ranks of a node have lies together
    std::uint64_t begun = 0;      // collectives
    std::uint64_t ended = 0;
    std::string broken = {}; // why one of them did not come to its end

    int node_ranks() const { return in_node->size(); }
    int nodes() const { return across->size(); }
    Traffic traffic() const { return in_node->traffic() + across->traffic(); }

    /// Those that go over both levels, for people.
    const char* calls() const {
        return numbered_by_node ? "all_reduce, all_gather and broadcast" : "all_reduce and broadcast";
    }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
