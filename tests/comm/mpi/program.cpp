#include <reigen/mpi.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Programs that CMakeLists.txt runs under mpirun and of which it reads what they print and how they end.

using reigen::Communicator;

namespace {

void sum_of_ranks(const Communicator& world) {
    std::vector<int> values = {world.rank() + 1};
    world.all_reduce(values);
    if (values[0] != world.size() * (world.size() + 1) / 2)
        throw std::logic_error("wrong sum");
}

/// Rank 1 throws while the others wait for it.
void one_throws(const Communicator& world) {
    sum_of_ranks(world);
    if (world.rank() == 1)
        throw std::runtime_error("boom");
    world.barrier();
}

/// Rank 1 goes silent; the others' deadline ends the job.
void one_is_silent(const Communicator& world) {
    sum_of_ranks(world);
    world.set_deadline(1);
    while (world.rank() == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    world.barrier();
}

/// Rank 1 returns while the others wait for it.
void one_returns(const Communicator& world) {
    world.set_deadline(1);
    if (world.rank() != 1)
        world.barrier();
}

/// Rank 1 calls another thing than the others do.
void one_differs(const Communicator& world) {
    world.set_deadline(10);
    sum_of_ranks(world);
    world.all_reduce(std::vector<int>(world.rank() == 1 ? 5 : 4));
}

/// Handles that live longer than MPI, and an operation nobody ever completes.
int outlives() {
    std::optional<Communicator> kept;
    int argc = 0;
    char** argv = nullptr;
    const int status = reigen::mpi_main(argc, argv, [&](const Communicator& world) {
        sum_of_ranks(world);
        kept = world.split(0, world.rank());
        if (world.size() > 1)
            static_cast<void>(kept->start_receive(reigen::Buffer<float>(100), (world.rank() + 1) % world.size()));
        return 7;
    });
    kept.reset();
    if (status == 7)
        std::puts("closed in good order");
    return status == 7 ? 0 : 1;
}

/// A host that owns MPI lends it, survives our error, and goes on.
int host() {
    MPI_Init(nullptr, nullptr);
    try {
        const Communicator guest = reigen::mpi_communicator(MPI_COMM_WORLD);
        sum_of_ranks(guest);
        if (guest.size() > 1)
            guest.send(std::vector<int>{1}, guest.size());
        throw std::runtime_error("the guest is done");
    } catch (const std::exception&) {
    }
    int rank = 0;
    int sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        std::puts("the host goes on");
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "host")
        return host();
    if (what == "outlives")
        return outlives();
    if (what == "throws")
        return reigen::mpi_main(argc, argv, one_throws);
    if (what == "silent")
        return reigen::mpi_main(argc, argv, one_is_silent);
    if (what == "differs")
        return reigen::mpi_main(argc, argv, one_differs);
    if (what == "returns")
        return reigen::mpi_main(argc, argv, one_returns);
    return reigen::mpi_main(argc, argv, sum_of_ranks);
}
