#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/random.hpp>
#include <reigen/core/types.hpp>

#include <cstdint>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A rank, numbered as in the communicator that is made faulty, and one of the messages it starts, counted from 0 over
/// all communicators made from it, sends and receives and those of collectives.
struct FaultAt {
    int rank = 0;
    Index message = 0;
};

/// What goes wrong with messages. Numbers drawn depend on the seed, the rank and the message alone.
struct FaultPlan {
    std::uint64_t seed = 1;
    double delay = 0; // seconds: a message starts up to so much later, and those of other tags may overtake it
    int late = 0;     // it is reported complete up to so many looks later, and received memory is garbage till then
    bool synchronous = false;           // a send is complete only when its receiver has taken it
    Index block = 0;                    // elements: what is longer travels in blocks of so many; 0 = whole
    std::optional<FaultAt> throws = {}; // a CommunicationError comes out instead of this message
    std::optional<FaultAt> silent =
        {}; // from this message on nothing of the rank moves: its waits end by their deadline
};

/// Throws ArgumentError where a plan makes no sense for so many ranks.
inline void check(const FaultPlan& plan, int ranks) {
    require(plan.delay >= 0, "FaultPlan: a delay of ", plan.delay, " seconds");
    require(plan.late >= 0, "FaultPlan: ", plan.late, " looks late");
    require(plan.block >= 0, "FaultPlan: blocks of ", plan.block, " elements");
    for (const auto& at : {plan.throws, plan.silent})
        require(!at || (at->rank >= 0 && at->rank < ranks && at->message >= 0), "FaultPlan: rank ", at ? at->rank : 0,
                " of ", ranks, ", message ", at ? at->message : 0);
}

namespace detail {

/// The plan as one rank carries it out, on all communicators together.
class FaultState {
  public:
    FaultState(const FaultPlan& plan_, int rank) : plan(plan_), rank_(rank), random_(plan.seed, rank) {}

    const FaultPlan plan;

    bool silent() const { return silent_; }

    /// Counts a message that starts.
    void next() {
        ++messages_;
        if (is_now(plan.silent))
            silent_ = true;
        if (is_now(plan.throws))
            throw CommunicationError(concat("rank ", rank_, " fails at its message ", messages_ - 1, ", as planned"));
    }

    /// What the plan has for the message counted last: seconds until it starts, looks until it is reported.
    double delay() const { return plan.delay * random_.uniform(2 * messages_); }
    int late() const { return int(random_.uniform(2 * messages_ + 1) * (plan.late + 1)); }

  private:
    bool is_now(const std::optional<FaultAt>& at) const {
        return at && at->rank == rank_ && at->message == messages_ - 1;
    }

    int rank_;
    RandomStream random_;
    Index messages_ = 0;
    bool silent_ = false;
};

} // namespace detail

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
