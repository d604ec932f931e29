#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/collectives/cost.hpp>
#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/collectives/schedule.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The groups in which a rank takes part where a group runs on several machines, as many ranks on each.
///
///     node 0   rank 0  1  2        in_node   0 1 2       3 4 5
///     node 1   rank 3  4  5        across    0 3   1 4   2 5
struct Levels {
    std::shared_ptr<Backend> in_node; // whose ranks share memory
    std::shared_ptr<Backend> across;  // one rank of each node

    Traffic traffic() const { return in_node->traffic() + across->traffic(); }
};

/// An all-reduce of which each rank of a node sends only its slice to other nodes: the node's ranks sum their slices in
/// shared memory, add those of the other nodes, and gather the sums in shared memory.
///
/// Order  each element in rank order within a node, then in the order of the nodes
/// Cost   n/L elements and its share of them to other nodes, as an all_reduce of so many; L the ranks of a node
class TwoLevelAllReduce final : public Started {
  public:
    TwoLevelAllReduce(const Levels& levels, const Operation& operation)
        : levels_(levels),
          operation_(operation),
          parts_(balanced_parts(operation.out_size, levels.in_node->size())),
          start_(starts_of(parts_)[std::size_t(levels.in_node->rank())]) {
        operation_.messages = nullptr; // which number ranks as the whole group does
        if (operation.messages != nullptr)
            operation.messages->take_note(traffic_of(slice(), levels.across->rank(), levels.across->size()));
    }

    bool advance() override {
        for (; stage_ < stages.size(); ++stage_, started_.reset()) {
            if (!started_)
                started_ = start(stage_);
            if (!started_->advance())
                return false;
        }
        return true;
    }

    bool revoke() noexcept override { return !started_ || started_->revoke(); }

    std::string waits_for() const override {
        if (!started_)
            return to_string(operation_);
        return concat(started_->waits_for(), ", which is ", stages[stage_], " of ", to_string(operation_));
    }

  private:
    static constexpr std::array<const char*, 3> stages = {"the sum in the node", "the sum across nodes",
                                                          "the gathering in the node"};

    std::unique_ptr<Started> start(std::size_t stage) const {
        switch (stage) {
        case 0:
            return levels_.in_node->start_collective(in_node(Call::reduce_scatter));
        case 1:
            return levels_.across->start_collective(slice());
        default:
            return levels_.in_node->start_collective(in_node(Call::all_gather));
        }
    }

    Index count() const { return parts_[std::size_t(levels_.in_node->rank())]; }
    std::byte* mine() const { return operation_.out + start_ * size_of(operation_.type); }

    Operation slice() const {
        Operation operation = operation_;
        operation.in = mine();
        operation.out = mine();
        operation.in_size = count();
        operation.out_size = count();
        return operation;
    }

    Operation in_node(Call call) const {
        Operation operation = slice();
        operation.call = call;
        operation.parts = parts_;
        if (call == Call::reduce_scatter) {
            operation.in = operation_.out;
            operation.in_size = operation_.out_size;
        } else {
            operation.out = operation_.out;
            operation.out_size = operation_.out_size;
        }
        return operation;
    }

    const Levels& levels_;
    Operation operation_;
    std::vector<Index> parts_;
    Index start_;
    std::size_t stage_ = 0;
    std::unique_ptr<Started> started_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
