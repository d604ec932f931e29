#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/comm/trace/recorder.hpp>

#include <array>
#include <cmath>
#include <limits>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// How far this rank's clock is ahead of rank 0's at one moment, in nanoseconds.
struct ClockReading {
    Index at = 0; // by this rank's clock
    Index ahead = 0;
};

/// Asks another rank for the time and takes half the way of the quickest answer. An answer that may as well be this
/// rank's own time, since it is off by no more than that half, counts as none: the ranks of one host have one clock.
inline Index clock_ahead_of_mine(const Communicator& ranks, int other, const TraceOptions& options) {
    constexpr int questions = 10;
    Index quickest = std::numeric_limits<Index>::max();
    Index ahead = 0;
    for (int question = 0; question < questions; ++question) {
        std::array<Index, 1> theirs = {0};
        const Index asked = trace_now(options);
        ranks.send(theirs, other);
        ranks.receive(theirs, other);
        const Index way = (trace_now(options) - asked) / 2;
        if (way < quickest)
            ahead = theirs[0] - asked - way;
        quickest = std::min(way, quickest);
    }
    ranks.send(std::array<Index, 1>{questions}, other);
    return std::abs(ahead) <= quickest ? 0 : ahead;
}

/// Compares this rank's clock with rank 0's. Collective.
inline ClockReading read_clock(const Communicator& ranks, const TraceOptions& options) {
    std::vector<Index> ahead(std::size_t(ranks.size()), 0);
    if (ranks.rank() == 0)
        for (int other = 1; other < ranks.size(); ++other)
            ahead[std::size_t(other)] = clock_ahead_of_mine(ranks, other, options);
    else
        for (std::array<Index, 1> asked = {0}; ranks.receive(asked, 0), asked[0] == 0;)
            ranks.send(std::array<Index, 1>{trace_now(options)}, 0);
    ranks.broadcast(ahead, 0);
    return {trace_now(options), ahead[std::size_t(ranks.rank())]};
}

/// Takes times of this rank to rank 0's clock and back, the clocks drifting evenly between two readings.
class TraceClock {
  public:
    TraceClock(ClockReading first, ClockReading last) : first_(first), last_(last) {}

    Index of_rank_0(Index mine) const { return mine - ahead(mine); }

    /// A drift does not show within the time that the clocks differ by.
    Index mine(Index of_rank_0) const { return of_rank_0 + ahead(of_rank_0 + last_.ahead); }

  private:
    Index ahead(Index mine) const {
        const double span = double(last_.at - first_.at);
        const double way = span > 0 ? double(mine - first_.at) / span : 1;
        return first_.ahead + Index(std::llround(way * double(last_.ahead - first_.ahead)));
    }

    ClockReading first_;
    ClockReading last_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
