#include <reigen/mpi.hpp>
#include <reigen/reigen.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

// Says how the ranks of mpi_main lie on machines, and those of a mesh whose fast axis has as many ranks as a machine.
// Collectives come out right in its order and in that of MPI.

namespace {

using namespace reigen;

void expect_collectives(const Communicator& ranks) {
    const Index count = 20001;
    std::vector<Index> parts;
    std::vector<int> gathered;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        parts.push_back(rank % 4 * count);
        gathered.insert(gathered.end(), std::size_t(parts.back()), rank);
    }
    const auto mine = [&](Index size) { return std::vector<int>(std::size_t(size), ranks.rank()); };
    std::vector<int> all(gathered.size());
    ranks.all_gather(mine(parts[std::size_t(ranks.rank())]), all, parts);
    require<Error>(all == gathered, "all_gather");
    for (int root = 0; root < ranks.size(); ++root) {
        auto told = mine(count);
        ranks.broadcast(told, root);
        require<Error>(std::ranges::count(told, root) == count, "broadcast from ", root);
    }
    auto sum = mine(count);
    ranks.all_reduce(sum);
    require<Error>(std::ranges::count(sum, ranks.size() * (ranks.size() - 1) / 2) == count, "all_reduce");
}

void say_order(const Communicator& world) {
    const Mesh mesh(world, {{cp, world.size() / 2}, {tp, 2}});
    const std::string text = describe(world) + describe(mesh);
    if (world.rank() == 0)
        std::fputs(text.c_str(), stdout);
    expect_collectives(world);
    expect_collectives(mpi_communicator(MPI_COMM_WORLD));
}

} // namespace

int main(int argc, char** argv) {
    return mpi_main(argc, argv, say_order);
}
