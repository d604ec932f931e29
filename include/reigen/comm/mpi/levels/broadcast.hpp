#pragma once

#include <reigen/comm/mpi/levels/collective.hpp>
#include <reigen/comm/mpi/levels/traffic.hpp>

#include <cstddef>
#include <memory>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A broadcast that crosses to each other node once, in slices: the root's node reads it in shared memory, each of its
/// ranks tells its slice to those of its place in the other nodes, which gather the slices in shared memory.
///
/// Cost   n/L elements to each of at most ceil(log2 M) nodes; L the ranks of a node, M the nodes
class TwoLevelBroadcast final : public TwoLevelCollective {
  public:
    /// From here on stages are worth their latency: between two hosts at 1 Gbit/s, of two ranks each, 16 KB took as long
    /// in either way, 1 KB 1.2 times as long in stages, and 256 KB half as long.
    static constexpr Index least_bytes = Index(32) << 10;

    /// `root`: in the numbering by nodes.
    TwoLevelBroadcast(Levels& levels, const Operation& operation, int root, const LevelsTraffic& traffic)
        : TwoLevelCollective(levels, operation,
                             traffic.of_broadcast(operation.out_size, root, size_of(operation.type))),
          root_(root) {}

  private:
    std::size_t stages() const override { return 3; }

    const char* name_of(std::size_t stage) const override {
        constexpr const char* names[] = {"the telling in the node", "the telling across nodes",
                                         "the gathering in the node"};
        return names[stage];
    }

    std::unique_ptr<Started> start(std::size_t stage) const override {
        const Index count = operation().out_size;
        const int root_node = root_ / levels().node_ranks();
        const bool is_roots = levels().across->rank() == root_node;
        if (stage == 0)
            return is_roots ? levels().in_node->start_collective(told(0, count, root_ % levels().node_ranks()))
                            : nullptr;
        if (stage == 2)
            return is_roots ? nullptr : gather_in_node(0, count);
        const auto slices = balanced_parts(count, levels().node_ranks());
        const auto mine = std::size_t(rank_in_node());
        return levels().across->start_collective(told(starts_of(slices)[mine], slices[mine], root_node));
    }

    Operation told(Index first, Index count, int root) const {
        Operation result = step(Call::broadcast, out(first), count, out(first), count);
        result.peer = root;
        return result;
    }

    int root_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
