#pragma once

#include <reigen/comm/mpi/levels/collective.hpp>
#include <reigen/comm/mpi/levels/traffic.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// An all-reduce of which each rank of a node sends only its slice to other nodes: the node's ranks sum their slices in
/// shared memory, add those of the other nodes, and gather the sums in shared memory.
///
/// Order  each element in rank order within a node, then in the order of the nodes
/// Cost   n/L elements and its share of them to other nodes, as an all_reduce of so many; L the ranks of a node
class TwoLevelAllReduce final : public TwoLevelCollective {
  public:
    TwoLevelAllReduce(Levels& levels, const Operation& operation, const LevelsTraffic& traffic)
        : TwoLevelCollective(levels, operation, traffic.of_all_reduce(operation.out_size, size_of(operation.type))),
          slices_(balanced_parts(operation.out_size, levels.node_ranks())) {}

  private:
    std::size_t stages() const override { return 3; }

    const char* name_of(std::size_t stage) const override {
        constexpr const char* names[] = {"the sum in the node", "the sum across nodes", "the gathering in the node"};
        return names[stage];
    }

    std::unique_ptr<Started> start(std::size_t stage) const override {
        const Index count = slices_[std::size_t(rank_in_node())];
        std::byte* const mine = out(starts_of(slices_)[std::size_t(rank_in_node())]);
        if (stage == 0) {
            Operation scatter = step(Call::reduce_scatter, operation().out, operation().out_size, mine, count);
            scatter.parts = slices_;
            return levels().in_node->start_collective(scatter);
        }
        if (stage == 1)
            return levels().across->start_collective(step(Call::all_reduce, mine, count, mine, count));
        return gather_in_node(0, operation().out_size);
    }

    std::vector<Index> slices_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
