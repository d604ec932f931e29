#pragma once

#include "overlap/work.hpp"
#include "support/orders.hpp"

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

/// Ranks that measure cases together, as rank 0 orders.
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
    Seconds carry_out(const bench::Order& order);

    reigen::Communicator world_;
    bench::Orders orders_;
    std::span<const Case> cases_;
    std::size_t current_;
    std::unique_ptr<Work> work_;
};

} // namespace overlap
