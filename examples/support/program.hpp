#pragma once

#include <reigen/comm/communicator.hpp>

#include <CLI/CLI.hpp>

#include <functional>
#include <stdexcept>

namespace examples {

/// What the user can put right: a missing file, options that do not combine. Throw it on every rank; it becomes one
/// line on stderr, once a job, and exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What each rank runs; its result is the program's exit code.
using RankBody = std::function<int(const reigen::Communicator& world)>;

/// Reads the command line and runs the body on every rank: the ranks of the launcher (mpirun, srun), or `--ranks P`
/// threads of this process, or one.
///
///     int main(int argc, char** argv) {
///         CLI::App app("What the program does.", "its_name");
///         int width = 64;
///         app.add_option("--width", width, "Columns")->capture_default_str();
///         return examples::run_program(app, argc, argv, [&](const reigen::Communicator& world) {
///             examples::console(world) << "hello from " << world.size() << " ranks\n";
///             return 0;
///         });
///     }
///
/// `--trace FILE` has the body run on a world that records (`TraceOption`).
///
/// `--help` prints to stdout and gives 0; a wrong option gives one line on stderr and 2. The body runs after the
/// options are set, on all ranks at once, so that options are to be read only.
int run_program(CLI::App& app, int argc, char** argv, const RankBody& body);

/// Whether a launcher (mpirun, srun) started this process as one of several.
bool started_by_launcher();

} // namespace examples
