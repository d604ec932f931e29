#pragma once

#include <train_gpt/corpus.hpp>
#include <train_gpt/options.hpp>

#include <reigen/comm/communicator.hpp>

#include <iosfwd>
#include <span>
#include <vector>

namespace train_gpt {

/// How many of the first steps are compared.
Index verified_steps(const Options& options);

/// The losses of the first steps trained on one rank alone, which is rank 0; with the same text, seeds and global
/// batches.
///
/// Collective  over the world: all ranks get the losses
std::vector<double> losses_on_one_rank(const reigen::Communicator& world, const Options& options, const Corpus& corpus);

/// The largest |a - b| / |b|; infinity where one of them is not finite.
double largest_relative_difference(std::span<const double> a, std::span<const double> b);

/// Prints how far the losses are from those of one rank; whether that is near enough for the scalar.
bool agrees_with_one_rank(std::ostream& out, std::span<const double> losses, std::span<const double> one_rank,
                          const Options& options);

} // namespace train_gpt
