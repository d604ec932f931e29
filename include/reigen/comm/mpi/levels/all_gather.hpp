#pragma once

#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/mpi/levels/collective.hpp>
#include <reigen/comm/mpi/levels/traffic.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// An all-gather in which each part crosses to another node once: the ranks of a node gather theirs in shared memory,
/// each sends its slice of them to one rank of every other node, and the slices that came are gathered in shared memory.
///
/// Cost   1/L of what the node has to each other node, in one message; L the ranks of a node. Without nodes each part
///        would cross to another one L times: two hosts of two ranks take 0.4 to 0.6 of the time at 1 Gbit/s from 256 KB
///        on, and 0.3 to 0.8 at 10 Gbit/s
class TwoLevelAllGather final : public TwoLevelCollective {
  public:
    TwoLevelAllGather(Levels& levels, const Operation& operation, std::vector<Index> parts,
                      const LevelsTraffic& traffic)
        : TwoLevelCollective(levels, operation, traffic.of_all_gather(parts, size_of(operation.type))),
          parts_(std::move(parts)) {
        for (int node = 0; node < levels.nodes(); ++node)
            blocks_.push_back(sum_of(parts_of_node(node)));
        starts_ = starts_of(blocks_);
    }

  private:
    std::size_t stages() const override { return 1 + std::size_t(levels().nodes()); }

    const char* name_of(std::size_t stage) const override {
        return stage == 0   ? "the gathering in the node"
               : stage == 1 ? "the exchange across nodes"
                            : "the gathering of what came to the node";
    }

    std::unique_ptr<Started> start(std::size_t stage) const override {
        if (stage == 0)
            return gather_own();
        if (stage == 1)
            return std::make_unique<Execution>(*levels().across, operation(), exchange());
        const int node = (own_node() + int(stage) - 1) % levels().nodes();
        return gather_in_node(starts_[std::size_t(node)], blocks_[std::size_t(node)]);
    }

    int own_node() const { return levels().across->rank(); }

    std::span<const Index> parts_of_node(int node) const { return parts_on(parts_, node, levels().node_ranks()); }

    std::unique_ptr<Started> gather_own() const {
        const auto node = std::size_t(own_node());
        Operation gather =
            step(Call::all_gather, operation().in, operation().in_size, out(starts_[node]), blocks_[node]);
        gather.parts = parts_of_node(own_node());
        return levels().in_node->start_collective(gather);
    }

    /// This rank's slice of its own node's block to those of its place in the other nodes, and theirs from them.
    Schedule exchange() const {
        Round round;
        for (const int node : peers_of(own_node(), levels().nodes())) {
            send(round, node, slice_of(own_node()));
            receive(round, node, slice_of(node));
        }
        return {{std::move(round)}, 0};
    }

    Piece slice_of(int node) const {
        const auto slices = balanced_parts(blocks_[std::size_t(node)], levels().node_ranks());
        const auto mine = std::size_t(rank_in_node());
        return {Memory::out, starts_[std::size_t(node)] + starts_of(slices)[mine], slices[mine]};
    }

    std::vector<Index> parts_;  // of each rank
    std::vector<Index> blocks_; // of each node
    std::vector<Index> starts_; // of the blocks
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
