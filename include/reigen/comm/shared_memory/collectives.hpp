#pragma once

#include <reigen/comm/shared_memory/exchanges.hpp>
#include <reigen/comm/shared_memory/reductions.hpp>

#include <memory>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The collectives of a group whose ranks share memory, as one rank runs them.
class SlotCollectives {
  public:
    explicit SlotCollectives(Slots slots, std::unique_ptr<PeerWatch> watch = std::make_unique<PeerWatch>())
        : use_{std::move(slots), std::move(watch)} {}

    /// Whether slots of this shape are large enough for so many ranks.
    static bool fits(int ranks, const SlotShape& shape) {
        return shape.slots >= 2 && shape.payload >= 256 && shape.payload >= 64 * Index(ranks);
    }

    const SlotShape& shape() const { return use_.slots.shape(); }

    /// `operation`: a collective, not `agree`. Ranks that call the same one choose alike.
    std::unique_ptr<Started> start(const Operation& operation) {
        switch (operation.call) {
        case Call::all_reduce:
            if (TwoShotAllReduce::pays(operation.out_size * size_of(operation.type), use_.slots.size()))
                return std::make_unique<TwoShotAllReduce>(use_, operation);
            return std::make_unique<OneShotAllReduce>(use_, operation);
        case Call::all_gather:
            return std::make_unique<SlotAllGather>(use_, operation);
        case Call::reduce_scatter:
            return std::make_unique<SlotReduceScatter>(use_, operation);
        case Call::broadcast:
            return std::make_unique<SlotBroadcast>(use_, operation);
        case Call::all_to_all:
            return std::make_unique<SlotAllToAll>(use_, operation);
        case Call::barrier:
            return meet(operation);
        case Call::agree:
        case Call::send:
        case Call::receive:
            break;
        }
        throw ArgumentError(concat(to_string(operation), " does not go through shared memory"));
    }

    /// The ranks come together, and see that they have come to the same.
    std::unique_ptr<Started> meet(const Operation& operation) {
        return std::make_unique<SlotMeeting>(use_, operation);
    }

  private:
    SlotUse use_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
