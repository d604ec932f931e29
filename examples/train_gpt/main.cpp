// Trains a byte-level GPT with tensor, sequence and data parallelism.

#include <train_gpt/options.hpp>
#include <train_gpt/run.hpp>

#include <support/program.hpp>

int main(int argc, char** argv) {
    CLI::App app(
        "Trains a byte-level GPT, its model and its sequences spread over the ranks, and shows what it learnt.",
        "train_gpt");
    app.footer("Examples:\n"
               "  train_gpt --ranks 2 --verify\n"
               "  mpirun -n 4 train_gpt --mesh cp=2,tp=2 --layout zigzag --sequence-parallel");
    train_gpt::Options options;
    train_gpt::declare_options(app, options);
    return examples::run_program(app, argc, argv,
                                 [&](const reigen::Communicator& world) { return train_gpt::run(options, world); });
}
