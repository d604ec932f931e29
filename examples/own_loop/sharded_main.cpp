// Trains the network of own_loop_eigen with its two products split over the ranks, and prints the same losses.
//
//     own_loop --ranks 4              ranks as threads
//     mpirun -n 4 own_loop            ranks of the MPI that the program itself started

#include <own_loop/own_program.hpp>

#include <support/checks.hpp>
#include <support/trace_option.hpp>
#include <support/world_options.hpp>

#include <reigen/comm/mesh.hpp>
#include <reigen/comm/threads.hpp>
#ifdef OWN_LOOP_WITH_MPI
#include <reigen/comm/mpi.hpp>
#endif

#include <atomic>
#include <exception>
#include <string>

void train(const own_loop::Settings& settings, const own_loop::Report& report, const reigen::Mesh& mesh);

namespace {

/// Runs the body on the ranks of the MPI that the program started, or on threads; the exit code.
int run(const own_loop::OwnProgram& program, const CLI::Option& ranks_option, int ranks,
        const examples::RankBody& body) {
#ifdef OWN_LOOP_WITH_MPI
    if (program.under_mpi()) {
        const reigen::Communicator world = reigen::mpi_communicator(MPI_COMM_WORLD);
        if (ranks_option.count() > 0 && ranks != world.size())
            return program.complain("--ranks makes threads; this job has the " + std::to_string(world.size()) +
                                    " ranks that mpirun started");
        return body(world);
    }
#endif
    static_cast<void>(program), static_cast<void>(ranks_option);
    std::atomic<int> worst = 0;
    reigen::run_threads(ranks, [&](const reigen::Communicator& world) {
        if (const int code = body(world); code != 0)
            worst = code;
    });
    return worst;
}

} // namespace

int main(int argc, char** argv) {
    own_loop::OwnProgram program(argc, argv, "own_loop",
                                 "Trains a small network in an ordinary Eigen loop, its two products split over the "
                                 "ranks; prints the losses of own_loop_eigen, which does the same on one rank.");
    int ranks = 1;
    const CLI::Option* const option =
        program.options()
            .add_option("--ranks", ranks, "Run on this many ranks as threads; under mpirun the ranks are mpirun's")
            ->check(examples::between(1, 1024))
            ->capture_default_str();
    examples::WorldOptions watched;
    watched.declare(program.options());
    examples::TraceOption trace;
    trace.declare(program.options());
    if (const auto early = program.parse())
        return *early;

    const auto train_on = [&](const reigen::Communicator& world) {
        const reigen::Mesh mesh(world, {{reigen::tp, world.size()}});
        train(program.settings(), program.report(world.rank()), mesh);
        return 0;
    };
    const auto on_each_rank = [&](const reigen::Communicator& world) {
        return trace.run(watched.apply(world), train_on);
    };
    try {
        return program.end(run(program, *option, ranks, on_each_rank));
    } catch (const examples::UsageError& error) {
        return program.complain(error.what());
    } catch (const std::exception& error) {
        return program.fail(error.what());
    }
}
