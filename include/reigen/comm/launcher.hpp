#pragma once

#include <reigen/core/error.hpp>

#include <atomic>
#include <cstdlib>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// Processes that a launcher has promised, and the variable that says so.
struct Promise {
    int processes = 1;
    const char* variable = "";
};

/// Reads the variables of Open MPI, of PMI (MPICH, Intel MPI), of MVAPICH and of a Slurm step.
inline Promise promise_of_launcher() {
    for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
        const char* const value = std::getenv(name);
        const int promised = value != nullptr ? std::atoi(value) : 1;
        if (promised > 1)
            return {promised, name};
    }
    return {};
}

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
    const auto [promised, variable] = detail::promise_of_launcher();
    require(promised <= 1, "the launcher started ", promised, " ranks (", variable,
            "), but each of them finds itself alone: is this program built with the launcher's MPI?");
}

namespace detail {

/// Refuses ranks as threads in one of several processes that know nothing of each other, for the same reason.
inline void check_threads_under_launcher(int ranks) {
    const auto [promised, variable] = promise_of_launcher();
    require(promised <= 1 || has_met_job, "run_threads: the launcher started ", promised, " processes (", variable,
            "), and each would run all ", ranks,
            " ranks as threads by itself: start one process, use mpi_main, or set ThreadOptions::alone if it is meant");
}

} // namespace detail

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
