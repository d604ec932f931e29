#pragma once

#include "shard_sizes/work.hpp"
#include "support/orders.hpp"

#include <memory>
#include <span>
#include <vector>

namespace shard_sizes {

/// What one batch took.
struct Measured {
    double seconds = 0;    // of one run on the case's ranks: the slowest rank's
    double bytes_sent = 0; // by this rank in one run
    double alone = 0;      // seconds of one run of the whole on rank 0
};

/// Ranks that measure cases together, as rank 0 orders.
class Crew {
  public:
    /// Collective over the world.
    Crew(const reigen::Communicator& world, std::span<const Case> cases);

    /// Rank 0: runs a case so many times on its ranks, and as often on rank 0 alone.
    Measured measure(std::size_t which, Index runs);

    /// Rank 0: lets the others go.
    void dismiss();

    /// The others: does what rank 0 orders until it lets them go.
    void follow();

  private:
    void prepare(std::size_t which);
    Measured run_together(Index runs);
    bool takes_part() const;

    reigen::Communicator world_;
    bench::Orders orders_;
    std::span<const Case> cases_;
    std::vector<reigen::Mesh> meshes_; // of the first 1, 2, ... ranks; of those left for the ranks outside
    std::size_t current_;
    std::unique_ptr<Work> work_;
    std::unique_ptr<Work> alone_;
};

} // namespace shard_sizes
