#pragma once

#include <reigen/comm/mpi/backend.hpp>
#include <reigen/comm/mpi/report.hpp>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// Ranks that are done wait here for those that are not, and tell those that fail that they are done. In MPI_Finalize a
/// rank that fails could not end the job: Open MPI 4.1 hangs when one rank aborts while another finalises.
inline void meet_before_finalize(const Communicator& closing, double deadline, MpiReport& report) {
    const auto start = Clock::now();
    auto all_here = closing.start_all_reduce(Buffer<std::uint8_t>::zeros(1));
    while (!all_here.done()) {
        report.answer();
        const double waited = seconds_since(start);
        require<TimeoutError>(deadline == 0 || waited <= deadline, "rank ", closing.rank(), " of ", closing.size(),
                              " has returned, and waited ", waited, " s for the others to do so");
        rest(waited);
    }
    all_here.wait();
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
/// An exception that reaches it is printed as "[rank r of P] message", by one rank for all, and aborts the job, so that
/// no other rank waits. A rank that never comes back ends the job too, when the first other one has waited for it until
/// its deadline; of those that have returned it is that of `world`.
/// `world` numbers ranks one machine after the other (`by_node`), as launchers mostly do. Where one dealt them out in
/// turn (`--map-by node`) these are not MPI's numbers, nor those of its environment: `describe` shows both, messages to
/// people go by ours. REIGEN_RANK_ORDER=launched in the environment of any rank keeps MPI's.
///
/// Where the launcher left it open which rank runs on which cores of a machine, its ranks divide them, before anything
/// of the body's is in memory (`Binding`, in `mpi_communicator`); OpenMP, in a file compiled for it, then takes as many
/// threads as the rank has cores, unless OMP_NUM_THREADS says otherwise. REIGEN_BINDING=never leaves all as launched.
///
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
    bool returned = false;
    std::optional<detail::NumberedWorld> numbered;
    std::optional<detail::MpiReport> report;
    try {
        require<CommunicationError>(level >= MPI_THREAD_FUNNELED, "this MPI gives thread level ", level,
                                    "; want MPI_THREAD_FUNNELED (", int(MPI_THREAD_FUNNELED), ')');
        numbered.emplace();
        const Communicator world = mpi_communicator(detail::numbered_world(), {.binding = Binding::automatic});
        const Communicator closing = mpi_communicator(detail::numbered_world());
        report.emplace();
        status = detail::run_body(body, world);
        returned = true;
        detail::meet_before_finalize(closing, world.deadline(), *report);
        detail::registry().close();
    } catch (...) {
        if (report)
            report->end_job(std::current_exception(), returned);
        detail::MpiReport::abort(detail::message_of(std::current_exception()));
    }
    report.reset();
    numbered.reset();
    MPI_Finalize();
    return status;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
