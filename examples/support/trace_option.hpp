#pragma once

#include <support/program.hpp>

#include <string>

namespace examples {

/// `--trace FILE`: records what the ranks do and wait for.
class TraceOption {
  public:
    void declare(CLI::App& app);

    /// Runs the body. Where the option is given, on a world that records; then writes the file and prints the summary.
    ///
    /// Collective  over the world
    /// Throws      UsageError on every rank, before the body runs, where the file cannot be written
    int run(const reigen::Communicator& world, const RankBody& body) const;

  private:
    std::string path_;
};

} // namespace examples
