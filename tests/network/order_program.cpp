#include <reigen/mpi.hpp>
#include <reigen/reigen.hpp>

#include <cstdio>

// Says how the ranks of mpi_main lie on machines, and those of a mesh whose fast axis has as many ranks as a machine.

int main(int argc, char** argv) {
    return reigen::mpi_main(argc, argv, [](const reigen::Communicator& world) {
        const reigen::Mesh mesh(world, {{reigen::cp, world.size() / 2}, {reigen::tp, 2}});
        const std::string text = describe(world) + describe(mesh);
        if (world.rank() == 0)
            std::fputs(text.c_str(), stdout);
    });
}
