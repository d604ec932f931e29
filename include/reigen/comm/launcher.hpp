#pragma once

#include <reigen/core/error.hpp>

#include <atomic>
#include <cstdlib>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What a launcher tells each process that it starts, in the environment. Nothing here throws: what is not a number
/// there counts as 0.
struct Launcher {
    const char* size_variable = "";
    const char* rank_variable = "";

    /// Processes of the job; 0 where this launcher started none.
    int size() const { return value_of(size_variable); }

    /// This process's number among them.
    int rank() const { return value_of(rank_variable); }

  private:
    static int value_of(const char* variable) {
        const char* const value = std::getenv(variable);
        return value != nullptr ? std::atoi(value) : 0;
    }
};

/// The launcher that started this process, if one did: Open MPI's, one that speaks PMI (MPICH, Intel MPI), MVAPICH's,
/// or a Slurm step; where one started another, the one that started several processes. Does not throw.
inline std::optional<Launcher> launcher() {
    constexpr Launcher known[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                  {"PMI_SIZE", "PMI_RANK"},
                                  {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                  {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
    for (const int least : {2, 1})
        for (const Launcher& candidate : known)
            if (candidate.size() >= least)
                return candidate;
    return std::nullopt;
}

namespace detail {

/// Whether this process has met the others of its job.
inline std::atomic<bool> has_met_job = false;

} // namespace detail

/// Refuses a world of one rank in a program whose launcher has promised more: without this, a program that was built
/// for another MPI than the launcher's, or for none, would run P times over, each alone, and nobody would notice.
/// `mpi_communicator` and `mpi_main` call it; a program whose only communicator is `Communicator()` may.
///
/// Throws  ArgumentError that names the launcher's variable
inline void check_launcher(int world_size) {
    if (world_size > 1) {
        detail::has_met_job = true;
        return;
    }
    const Launcher started_by = launcher().value_or(Launcher{});
    require(started_by.size() <= 1, "the launcher started ", started_by.size(), " ranks (", started_by.size_variable,
            "), but each of them finds itself alone: is this program built with the launcher's MPI?");
}

namespace detail {

/// Refuses ranks as threads in one of several processes that know nothing of each other, for the same reason.
inline void check_threads_under_launcher(int ranks) {
    const Launcher started_by = launcher().value_or(Launcher{});
    require(started_by.size() <= 1 || has_met_job, "run_threads: the launcher started ", started_by.size(),
            " processes (", started_by.size_variable, "), and each would run all ", ranks,
            " ranks as threads by itself: start one process, use mpi_main, or set ThreadOptions::alone if it is meant");
}

} // namespace detail

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
