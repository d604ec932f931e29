#pragma once

#include <reigen/core/error.hpp>

// The C interface alone, also where a compiler wrapper would add an MPI's own C++ classes.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

inline std::string mpi_error_text(int code) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    return MPI_Error_string(code, text, &length) == MPI_SUCCESS ? std::string(text, std::size_t(length))
                                                                : concat("error ", code);
}

/// Turns MPI's return code into an exception that says what was being done.
template <class... What>
void mpi_check(int code, const What&... what) {
    if (code != MPI_SUCCESS) [[unlikely]]
        throw CommunicationError(concat(what..., ": ", mpi_error_text(code)));
}

/// Whether MPI can be called now; what destructors ask first.
inline bool mpi_is_alive() noexcept {
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized != 0 && finalized == 0;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The name and version of the MPI that runs: "Open MPI v4.1.4". Callable before it is initialised.
inline std::string mpi_version() {
    char words[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(words, &length);
    const std::string text(words, std::size_t(length));
    return text.substr(0, text.find_first_of(",\n"));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
