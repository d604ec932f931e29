#pragma once

#include <reigen/comm/communicator.hpp>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace examples {

/// The text that `make` gives on rank 0, on every rank: so a file needs to be where rank 0 runs only, and all ranks
/// see the same. Throws on every rank the UsageError that it throws on rank 0.
std::string text_of_first_rank(const reigen::Communicator& world, const std::function<std::string()>& make);

/// The numbers that `make` gives on rank 0, on every rank. The others wait, however long it takes.
std::vector<double> numbers_of_first_rank(const reigen::Communicator& world,
                                          const std::function<std::vector<double>()>& make);

/// A new file, opened on rank 0 only; elsewhere, and where the path is empty, a stream that swallows everything.
/// Throws UsageError on every rank where it cannot be written.
std::ofstream file_of_first_rank(const reigen::Communicator& world, const std::string& path);

/// The bytes of a file. Throws UsageError where it cannot be read.
std::string read_file(const std::string& path);

} // namespace examples
