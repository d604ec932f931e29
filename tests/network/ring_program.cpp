#include <reigen/attention/ring.hpp>
#include <reigen/mpi.hpp>

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

// ring_program DEADLINE: ring attention, forward and backward, round after round, until something ends it. Says on which
// process each rank is, and when all are at it.

namespace {

using namespace reigen;

constexpr Placement tokens = split_rows(cp);

void run_rounds(const Communicator& world) {
    const Mesh mesh(world, {{Axes::cp, world.size()}});
    const Sequences sequences = {.length = 96, .layout = SequenceLayout::zigzag};
    const Partition rows = sequences.rows(mesh, cp);
    const auto x = Sharded<float, tokens>::from_global(
        mesh, rows, 64, [](Index i, Index j) { return float((3 * i + 5 * j) % 11) / 11; });
    const auto of = [&](auto& matrix) { return heads(matrix, sequences, 32); };
    Sharded<float, tokens> dq(x.spec()), dk(x.spec()), dv(x.spec());
    for (Index round = 0;; ++round) {
        const auto [out, lse] = ring_attention(of(x), of(x), of(x), {.mask = Mask::causal()});
        ring_attention_backward(of(x), of(x), of(x), out, lse, out, of(dq), of(dk), of(dv), {.mask = Mask::causal()});
        if (round == 20)
            std::printf("turning rank %d process %d\n", world.rank(), int(getpid()));
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    return mpi_main(argc, argv, [&](const Communicator& world) {
        world.set_deadline(argc > 1 ? std::atof(argv[1]) : 5);
        run_rounds(world);
    });
}
