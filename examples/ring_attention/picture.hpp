#pragma once

#include <ring_attention/hops.hpp>

#include <iosfwd>

namespace ring_attention {

/// Which positions each rank holds.
void show_positions(const reigen::Sequences& sequences, int ranks, std::ostream& out);

/// What each rank makes of the block it has at each hop: full, mixed or empty, and its share of all pairs.
void show_hops(const HopPlan& plan, std::ostream& out);

/// Queries down, keys across: at which hop each pair is computed.
void show_pairs(const reigen::Sequences& sequences, const reigen::Mask& mask, const HopPlan& plan, std::ostream& out);

} // namespace ring_attention
