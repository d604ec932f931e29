// Two ranks under mpirun.
#include <reigen/mpi.hpp>
#include <reigen/reigen.hpp>

#include <vector>

int main(int argc, char** argv) {
    return reigen::mpi_main(argc, argv, [](const reigen::Communicator& world) {
        std::vector<float> sum = {float(world.rank() + 1)};
        world.all_reduce(sum);
        reigen::require(world.size() == 2 && sum[0] == 3, "two ranks sum to ", sum[0]);
    });
}
