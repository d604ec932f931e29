#pragma once

#include <ring_attention/options.hpp>

#include <reigen/comm/communicator.hpp>

namespace ring_attention {

/// Shows the plan, runs it, and shows what it sent, held and got wrong. Gives the program's exit code: 1 where the
/// result is not the reference's.
///
/// Collective  over the world
int run(const Options& options, const reigen::Communicator& world);

} // namespace ring_attention
