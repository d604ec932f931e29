#include "failure/operations.hpp"

#ifdef REIGEN_TEST_WITH_MPI
#include <reigen/mpi.hpp>
#endif
#include <reigen/comm/faulty.hpp>
#include <reigen/comm/threads.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

// failing_program RANKS OPERATION FAULT DEADLINE
//
// The ranks do the operation once together; then rank 1 has the fault and the others do the operation again. RANKS are
// threads, or 0: those of mpirun. How it must end is what programs.test.cpp asks.

using reigen::Communicator;

namespace {

struct Arguments {
    int ranks;
    std::string operation;
    std::string fault;
    double deadline;
};

const NamedOperation& operation(const std::string& name) {
    for (const NamedOperation& candidate : operations())
        if (candidate.name == name)
            return candidate;
    throw std::invalid_argument("no operation " + name);
}

[[noreturn]] void sleep_for_ever() {
    for (;;)
        std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Tells whoever wants to interrupt the program which process is here.
void say_ready() {
    std::printf("ready %d\n", int(getpid()));
    std::fflush(stdout);
}

/// So that the test knows how long the others took to end.
void say_when_it_fails() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::printf("fails at %.3f s\n", std::chrono::duration<double>(now).count());
    std::fflush(stdout);
}

/// Returns when rank 1 is to go on with the operation.
bool goes_on_after(const std::string& fault) {
    if (fault == "throws")
        throw std::runtime_error("boom");
    if (fault == "sleeps" || fault == "interrupted")
        sleep_for_ever();
    if (fault == "killed")
        std::raise(SIGKILL);
    return fault != "returns";
}

/// What the ranks make of an error before it ends them: each says it, and all have when the job ends.
void say_on_every_rank(const Communicator& all, const char* words) {
    std::printf("rank %d: %s\n", all.rank(), words);
    std::fflush(stdout);
    const reigen::Deadline moment(1);
    all.barrier();
}

void run(const Arguments& arguments, const Communicator& all) {
    const Communicator world = all.split(0, all.rank());
    const bool fails = world.rank() == 1;
    const NamedOperation& named = operation(arguments.operation);
    named.prepare(world, 0)();
    const auto step = named.prepare(world, fails && arguments.fault == "shape" ? 1 : 0);
    world.barrier();
    world.set_deadline(arguments.deadline);
    all.set_deadline(arguments.deadline);
    if (arguments.fault == "interrupted")
        say_ready();
    else if (fails && arguments.fault != "none")
        say_when_it_fails();
    if (fails && !goes_on_after(arguments.fault))
        return;
    try {
        step();
    } catch (const reigen::DisagreementError& error) {
        say_on_every_rank(all, error.what());
        throw;
    }
}

int run_on_threads(const Arguments& arguments) {
    try {
        reigen::run_threads(arguments.ranks, [&](const Communicator& world) { run(arguments, world); },
                            {.patience = 0.5});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5)
        return 2;
    const Arguments arguments = {std::atoi(argv[1]), argv[2], argv[3], std::atof(argv[4])};
#ifdef REIGEN_TEST_WITH_MPI
    if (arguments.ranks == 0)
        return reigen::mpi_main(argc, argv, [&](const Communicator& world) { run(arguments, world); });
#endif
    return run_on_threads(arguments);
}
