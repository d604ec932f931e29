#pragma once

#include <reigen/comm/communicator.hpp>

#include <CLI/CLI.hpp>

#include <optional>

namespace examples {

/// `--checked` and `--deadline SECONDS`: what is watched while the ranks work together.
class WorldOptions {
  public:
    void declare(CLI::App& app);

    /// The world as the options want it. Collective over `world` where it is to be checked.
    reigen::Communicator apply(const reigen::Communicator& world) const;

  private:
    bool checked_ = false;
    std::optional<double> deadline_;
};

} // namespace examples
