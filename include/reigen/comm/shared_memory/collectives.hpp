#pragma once

#include <reigen/comm/shared_memory/all_to_all.hpp>
#include <reigen/comm/shared_memory/direct.hpp>
#include <reigen/comm/shared_memory/exchanges.hpp>
#include <reigen/comm/shared_memory/reductions.hpp>

#include <memory>
#include <string>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The collectives of a group whose ranks share memory, as one rank runs them.
class SlotCollectives {
  public:
    explicit SlotCollectives(Slots slots, std::unique_ptr<PeerWatch> watch = std::make_unique<PeerWatch>(),
                             PeerMemory peer_memory = {})
        : use_{std::move(slots), std::move(watch), std::move(peer_memory)} {}

    /// Whether slots of this shape are large enough for so many ranks.
    static bool fits(int ranks, const SlotShape& shape) {
        return shape.slots >= 2 && shape.payload >= 256 && shape.payload >= 64 * Index(ranks) &&
               AllToAll::fits(ranks, shape.payload);
    }

    /// What is done with long memory: ", long Buffers read in place".
    std::string how() const {
        return concat(use_.peer_memory.in_place() ? ", long Buffers read in place" : "",
                      use_.peer_memory.copies() ? ", other long memory copied by the system" : "");
    }

    const PeerMemory& peer_memory() const { return use_.peer_memory; }
    const SlotShape& shape() const { return use_.slots.shape(); }

    /// `operation`: a collective, not `agree`. Ranks that call the same one choose alike.
    std::unique_ptr<Started> start(const Operation& operation) {
        switch (operation.call) {
        case Call::all_reduce:
            if (TwoShotAllReduce::pays(whole_bytes(operation), use_.slots.size()))
                return start_long_or<DirectAllReduce, TwoShotAllReduce>(operation);
            return start_long_or<DirectAllReduce, OneShotAllReduce>(operation);
        case Call::all_gather:
            return start_long_or<DirectAllGather, SlotAllGather>(operation);
        case Call::reduce_scatter:
            return start_long_or<DirectReduceScatter, SlotReduceScatter>(operation);
        case Call::broadcast:
            return start_long_or<DirectBroadcast, SlotBroadcast>(operation);
        case Call::all_to_all:
            return start_plan<AllToAll>(operation);
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
    std::unique_ptr<Started> meet(const Operation& operation) { return start_plan<SlotMeeting>(operation); }

  private:
    template <class Plan>
    std::unique_ptr<Started> start_plan(const Operation& operation) {
        return std::make_unique<SlotCollective<Plan>>(use_, operation);
    }

    template <class Direct, class Slots>
    std::unique_ptr<Started> start_long_or(const Operation& operation) {
        if (Direct::limits.may_read(use_.peer_memory, whole_bytes(operation)))
            return start_plan<DirectOr<Direct, Slots>>(operation);
        return start_plan<Slots>(operation);
    }

    SlotUse use_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
