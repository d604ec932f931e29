#pragma once

#include <own_loop/own_loop.hpp>

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace own_loop {

/// What a program has around its training loop, before and after it met the library: options, and an MPI that it
/// starts and ends itself where mpirun started it.
class OwnProgram {
  public:
    OwnProgram(int argc, char** argv, const std::string& name, const std::string& description);
    ~OwnProgram();
    OwnProgram(const OwnProgram&) = delete;
    OwnProgram& operator=(const OwnProgram&) = delete;

    /// To declare further options.
    CLI::App& options() { return app_; }

    /// Reads the command line; the exit code, where that is all there is to do.
    std::optional<int> parse();

    /// One line on stderr, once a job; the exit code of a wrong option.
    int complain(const std::string& message) const;

    /// One line on stderr, and the end of the whole job: the other ranks may wait for this one. The exit code.
    int fail(const std::string& message) const;

    /// The exit code, which is no longer that of success where what was printed has gone nowhere.
    int end(int code) const;

    const Settings& settings() const { return settings_; }
    bool under_mpi() const { return under_mpi_; }

    /// Prints the loss now and then, on rank 0.
    Report report(int rank) const;

    /// This process's number under mpirun, else 0.
    int rank() const { return rank_; }

  private:
    void print_error(std::string line) const;

    int argc_;
    char** argv_;
    CLI::App app_;
    Settings settings_;
    bool under_mpi_ = false;
    int rank_ = 0;
};

} // namespace own_loop
