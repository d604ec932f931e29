#pragma once

#include <reigen/core/error.hpp>

#include <cstdlib>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Refuses a world of one rank in a program whose launcher has promised more: without this, a program that was built
/// for another MPI than the launcher's, or for none, would run P times over, each alone, and nobody would notice.
///
/// Reads the variables of Open MPI, of PMI (MPICH, Intel MPI), of MVAPICH and of a Slurm step.
/// Throws  ArgumentError that names the variable
inline void check_launcher(int world_size) {
    if (world_size != 1)
        return;
    for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
        const char* const value = std::getenv(name);
        const int promised = value != nullptr ? std::atoi(value) : 1;
        require(promised <= 1, "the launcher started ", promised, " ranks (", name,
                "), but each of them finds itself alone: is this program built with the launcher's MPI?");
    }
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
