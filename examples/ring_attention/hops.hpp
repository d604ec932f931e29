#pragma once

#include <reigen/attention/ring_route.hpp>
#include <reigen/kernel/mask.hpp>
#include <reigen/layout/sequences.hpp>

#include <optional>
#include <vector>

namespace ring_attention {

using reigen::Index;

/// What one rank does with one block of keys.
struct HopWork {
    int block = 0;      // whose keys they are
    Index seen = 0;     // pairs of query and key that the mask lets through
    Index pairs = 0;    // all pairs
    bool needed = true; // whether the rank works on the block or only passes it on
};

/// One column of the plan: a way round and how many steps the blocks have come.
struct Hop {
    reigen::Turn turn;
    int step;
};

/// Who computes what when: `at[rank][hop]` is empty where no block is on the rank.
struct HopPlan {
    std::vector<Hop> hops;
    std::vector<std::vector<std::optional<HopWork>>> at;
    reigen::RingRoute route;

    /// The hop at which a rank works on a block, if it does.
    std::optional<int> hop_of(int rank, int block) const;
    /// Pairs that a rank computes in all hops.
    Index seen_by(int rank) const;
};

/// The plan that `ring_attention` follows for sequences of queries and keys alike.
HopPlan plan_hops(const reigen::Sequences& sequences, const reigen::Mask& mask, int ranks);

} // namespace ring_attention
