#pragma once

#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/collectives/schedule.hpp>
#include <reigen/comm/mpi/levels/groups.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A collective in stages, each of them one of the groups that `Levels` has: the base of all such.
///
/// Those of a group come one after the other, in the order of their start: the ranks of a node would otherwise come to
/// the stages of two of them in different orders.
class TwoLevelCollective : public Started {
  public:
    TwoLevelCollective(Levels& levels, const Operation& operation, Traffic sent)
        : levels_(levels), operation_(operation), number_(levels.begun++) {
        operation_.messages = nullptr; // which number ranks as the whole group does
        operation_.parts = {};
        if (operation.messages != nullptr && operation.counted)
            operation.messages->take_note(sent);
    }

    ~TwoLevelCollective() override {
        if (!complete_)
            levels_.broken = to_string(operation_) + ", which was given up";
    }

    bool advance() override {
        if (complete_)
            return true;
        require<CommunicationError>(levels_.broken.empty(), "after ", levels_.broken);
        if (levels_.ended != number_)
            return false;
        for (; stage_ < stages(); ++stage_, started_.reset()) {
            if (!started_)
                started_ = start(stage_);
            if (started_ && !started_->advance())
                return false;
        }
        complete_ = true;
        ++levels_.ended;
        return true;
    }

    bool revoke() noexcept override { return !started_ || started_->revoke(); }

    std::string waits_for() const override {
        if (!started_)
            return concat("an earlier collective in ", to_string(operation_));
        return concat(started_->waits_for(), ", which is ", name_of(stage_), " of ", to_string(operation_));
    }

  protected:
    Levels& levels() const { return levels_; }
    const Operation& operation() const { return operation_; }
    int rank_in_node() const { return levels_.in_node->rank(); }
    std::byte* out(Index first) const { return operation_.out + first * size_of(operation_.type); }

    /// The same call, or another one, on this memory.
    Operation step(Call call, const std::byte* in, Index in_size, std::byte* out, Index out_size) const {
        Operation result = operation_;
        result.call = call;
        result.in = in;
        result.in_size = in_size;
        result.out = out;
        result.out_size = out_size;
        return result;
    }

    /// Each rank of the node has its slice of `count` elements of `out` from `first` on; then it has all.
    std::unique_ptr<Started> gather_in_node(Index first, Index count) const {
        const auto slices = balanced_parts(count, levels_.node_ranks());
        const auto mine = std::size_t(rank_in_node());
        Operation gather =
            step(Call::all_gather, out(first + starts_of(slices)[mine]), slices[mine], out(first), count);
        gather.parts = slices;
        return levels_.in_node->start_collective(gather);
    }

  private:
    virtual std::size_t stages() const = 0;

    /// Null where this rank has no part in a stage.
    virtual std::unique_ptr<Started> start(std::size_t stage) const = 0;
    virtual const char* name_of(std::size_t stage) const = 0;

    Levels& levels_;
    Operation operation_;
    std::uint64_t number_;
    std::size_t stage_ = 0;
    bool complete_ = false;
    std::unique_ptr<Started> started_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
