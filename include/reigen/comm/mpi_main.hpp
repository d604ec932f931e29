#pragma once

#include <reigen/comm/launcher.hpp>
#include <reigen/comm/mpi_backend.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

[[noreturn]] inline void end_job(const std::string& message) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::fflush(stdout);
    std::fputs(concat("[rank ", rank, " of ", size, "] ", message, '\n').c_str(), stderr);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    std::_Exit(EXIT_FAILURE);
}

/// Ranks that are done wait here for those that are not, for as long as MPI_Finalize would. There, unlike here, a rank
/// that fails could not end the job: Open MPI 4.1 hangs when one rank aborts while another finalises.
inline void meet_before_finalize(const Communicator& closing) {
    closing.set_deadline(0);
    closing.barrier();
}

template <class Body>
int run_body(const Body& body, const Communicator& world) {
    if constexpr (std::is_void_v<std::invoke_result_t<const Body&, const Communicator&>>) {
        body(world);
        return EXIT_SUCCESS;
    } else
        return body(world);
}

} // namespace detail

/// The main function of a program that leaves MPI to us: initialises it, runs `body(world)`, finalises it. A body that
/// returns an int gives the exit status.
///
/// An exception that reaches it is printed as "[rank r of P] message" and aborts the job, so that no other rank waits.
/// Asks for MPI_THREAD_FUNNELED: the body's own thread alone may communicate. A world of one rank under a launcher that
/// promised more is such an error (`check_launcher`).
template <class Body>
int mpi_main(int argc, char** argv, const Body& body) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    require(initialized == 0, "mpi_main: MPI is initialised already; use mpi_communicator in a program that owns MPI");
    int level = MPI_THREAD_SINGLE;
    detail::mpi_check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    int status = EXIT_FAILURE;
    try {
        require<CommunicationError>(level >= MPI_THREAD_FUNNELED, "this MPI gives thread level ", level,
                                    "; want MPI_THREAD_FUNNELED (", int(MPI_THREAD_FUNNELED), ')');
        const Communicator world = mpi_communicator(MPI_COMM_WORLD);
        const Communicator closing = mpi_communicator(MPI_COMM_WORLD);
        check_launcher(world.size());
        status = detail::run_body(body, world);
        detail::meet_before_finalize(closing);
        detail::registry().close();
    } catch (...) {
        detail::end_job(detail::message_of(std::current_exception()));
    }
    MPI_Finalize();
    return status;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
