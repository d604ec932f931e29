#pragma once

#include <train_gpt/training.hpp>

#include <span>
#include <string>

namespace train_gpt {

/// The index that a uniform number in [0, 1) picks where index i has weight exp(logits[i] / temperature); at
/// temperature 0 the first of the largest.
Index pick(std::span<const double> logits, double temperature, double uniform);

/// Continues a prompt by `options.sample` bytes, each from a forward pass over as much of the text as the context
/// holds.
std::string continue_text(Training& training, std::string_view prompt, const Options& options);

/// What may be sent to a terminal: control characters other than line ends and tabs become '?'.
std::string printable(std::string text);

} // namespace train_gpt
