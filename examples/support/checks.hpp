#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace examples {

/// For `option->check(...)`: refuses what is no number or is below `least`, in plain words.
CLI::Validator at_least(double least);

/// Refuses what is no number above zero.
CLI::Validator positive();

/// Refuses what is no number between the two, both allowed.
CLI::Validator between(double least, double most);

/// Refuses every word but these.
CLI::Validator one_of(std::vector<std::string> words);

} // namespace examples
