#pragma once

#include "overlap/work.hpp"

#include <memory>
#include <span>

namespace overlap {

/// Seconds of one run: the slowest rank's.
struct Seconds {
    double overlapped = 0;
    double plain = 0;
    double computing = 0;
    double alone = 0;     // all of the work on rank 0, while the others wait
    double all_alone = 0; // all of the work on every rank at once
};

/// Ranks that measure cases together. Google Benchmark runs on rank 0 alone and decides there what is run and how
/// often; the others follow its orders.
class Crew {
  public:
    Crew(const reigen::Communicator& world, std::span<const Case> cases);

    /// Rank 0: runs a case so many times in each of its ways, one way after the other.
    Seconds measure(std::size_t which, Index runs);

    /// Rank 0: lets the others go.
    void dismiss();

    /// The others: does what rank 0 orders until it lets them go.
    void follow();

  private:
    struct Order {
        Index which = -1; // -1: go
        Index runs = 0;
    };

    void announce(Order& order) const;
    Seconds carry_out(const Order& order);

    reigen::Communicator world_;
    std::span<const Case> cases_;
    std::size_t current_;
    std::unique_ptr<Work> work_;
};

} // namespace overlap
