#pragma once

#include <reigen/core/runs.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace train_gpt {

using reigen::Index;

/// Where in a text the sequences of one global batch start. Every rank computes all of them.
using Starts = std::vector<Index>;

/// A batch at places that depend on the seed, the step and the micro-batch only.
Starts random_starts(std::string_view text, Index sequences, Index length, std::uint64_t seed, Index step,
                     Index micro_batch);

/// Up to `most` windows that do not overlap, evenly over the text.
Starts even_starts(std::string_view text, Index most, Index length);

/// The bytes at the global rows b * length + position that a rank holds, as tokens: the inputs of a batch; and with
/// `ahead` = 1 those that follow each of them, its targets.
std::vector<std::int32_t> cut(std::string_view text, const Starts& starts, Index length, const reigen::Runs& rows,
                              Index ahead = 0);

} // namespace train_gpt
