// Shows attention over a ring of ranks: who holds what, what is computed at each hop, what it costs, how exact it is.
//
//     ring_attention --ranks 4 --layout zigzag
//     mpirun -n 3 ring_attention --layout striped --mask window --window 6 --backward

#include <ring_attention/options.hpp>
#include <ring_attention/run.hpp>

#include <support/program.hpp>

int main(int argc, char** argv) {
    CLI::App app("Attention of one sequence that is divided over the ranks of a ring: queries stay, keys and values go "
                 "round. Shows which positions each rank holds, what it computes at each hop, what it sends and holds, "
                 "and the error against dense attention.",
                 "ring_attention");
    ring_attention::Options options;
    ring_attention::add_options(app, options);
    return examples::run_program(app, argc, argv, [&](const reigen::Communicator& world) {
        ring_attention::check(options);
        return ring_attention::run(options, world);
    });
}
