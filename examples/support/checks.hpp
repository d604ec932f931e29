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

/// Refuses what is not a whole number that 64 bits hold.
CLI::Validator seed();

/// Refuses '', as an unset variable of a shell leaves it; `wanted` is what the message asks for.
CLI::Validator not_empty(const std::string& wanted);

/// Refuses every word but these.
CLI::Validator one_of(std::vector<std::string> words);

/// An option and its value.
struct NamedSize {
    const char* option;
    double value;
};

/// What is wrong with options that are multiplied, where the product is beyond a million million; "" where nothing is.
std::string too_many(const std::vector<NamedSize>& factors);

/// The first complaint about any of these products; "" where there is none.
std::string any_too_many(const std::vector<std::vector<NamedSize>>& products);

} // namespace examples
