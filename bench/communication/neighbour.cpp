#include "communication/contenders.hpp"
#include "support/stopwatch.hpp"

#include <reigen/comm/mpi/call.hpp>

#include <cstring>
#include <vector>

namespace communication {

struct Neighbour::Memory {
    reigen::Communicator world;
    MPI_Win window = MPI_WIN_NULL;
    std::size_t bytes = 0;
    std::byte* own = nullptr;
    std::byte* next = nullptr;
    std::vector<std::byte> copy;
    int round = 0;
};

Neighbour::Neighbour(const Case& which, const reigen::Communicator& world) : memory_(std::make_unique<Memory>()) {
    Memory& memory = *memory_;
    memory.world = world;
    memory.bytes = std::size_t(which.bytes_read(world.size()));
    memory.copy.resize(memory.bytes);
    reigen::detail::mpi_check(MPI_Win_allocate_shared(MPI_Aint(memory.bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                                                      static_cast<void*>(&memory.own), &memory.window),
                              "MPI_Win_allocate_shared");
    MPI_Aint size = 0;
    int unit = 1;
    MPI_Win_shared_query(memory.window, (world.rank() + 1) % world.size(), &size, &unit,
                         static_cast<void*>(&memory.next));
}

Neighbour::~Neighbour() {
    MPI_Win_free(&memory_->window);
}

double Neighbour::seconds() {
    Memory& memory = *memory_;
    std::memset(memory.own, ++memory.round, memory.bytes);
    memory.world.barrier();
    const double seconds = bench::wall_seconds_of([&] { std::memcpy(memory.copy.data(), memory.next, memory.bytes); });
    memory.world.barrier();
    return seconds;
}

} // namespace communication
