#pragma once

#include <train_gpt/options.hpp>

#include <reigen/comm/communicator.hpp>

namespace train_gpt {

/// Trains, prints what the options ask for, and gives the exit code: 1 where --verify finds a difference.
int run(const Options& options, const reigen::Communicator& world);

} // namespace train_gpt
