#pragma once

#include <reigen/comm/checked.hpp>
#include <reigen/comm/mesh.hpp>

#include <functional>
#include <vector>

// The worlds a test body runs on. Test sources are linked with one of two mains: threads_main.cpp makes worlds of
// threads, mpi_main.cpp takes them from mpirun. A failed assertion names its rank; what a body throws is a failure.
// The ranks compare what they call (`checked`) unless REIGEN_CHECKED=0.

using WorldBody = std::function<void(const reigen::Communicator&)>;

/// Runs the body on every world the binary has: 1, 2, 3, 4 and 5 threads, or the one that mpirun made.
void on_every_world(const WorldBody& body);

/// Runs the body on exactly `ranks` ranks; under MPI on the first of them, and not at all where there are fewer.
void on_world(int ranks, const WorldBody& body);

/// A group of the same ranks that compares nothing, whatever REIGEN_CHECKED says: for tests in which ranks knowingly
/// call different things and want the transport's own answer.
inline reigen::Communicator unchecked(const reigen::Communicator& world) {
    const reigen::Communicator group = world.split(0, world.rank());
    const auto* const check = dynamic_cast<const reigen::Checked*>(group.backend().get());
    return check != nullptr ? reigen::Communicator(check->wrapped()) : group;
}

/// Runs the body on a mesh of just as many ranks as it needs.
inline void on_mesh(const std::vector<reigen::MeshAxis>& axes, const std::function<void(const reigen::Mesh&)>& body) {
    int ranks = 1;
    for (const reigen::MeshAxis& entry : axes)
        ranks *= entry.size;
    on_world(ranks, [&](const reigen::Communicator& world) { body(reigen::Mesh(world, axes)); });
}
