#include "shard_sizes/crew.hpp"
#include "support/benchmark_options.hpp"
#include "support/median.hpp"
#include "support/rows.hpp"

#include <support/program.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shard_sizes {
namespace {

const char* const footer =
    R"(Each row is one product, or one step of an MLP, of a model whose wide side is 4 x width, on the first tp ranks. Rank 0
fixes how often a row is run; times are those of the slowest rank; the same work on one rank is measured in turns.

  Time              seconds of one run on tp ranks
  gflops_a_rank     billions of multiplications and additions a second, of each rank
  efficiency        time on one rank / (tp x time on tp ranks): 1 is perfect, 1/tp means that more ranks gain nothing
  bytes_sent        by a rank in one run

  column   x [tokens, width] times W [width, 4 width] split by columns: no message
  row      h [tokens, 4 width] times W [4 width, width] split by rows: an all-reduce
  mlp      both with GELU between, forward and backward: two all-reduces

Google Benchmark's own options choose rows and output:
  --benchmark_filter=mlp.*tp:2   --benchmark_min_time=0.05   --benchmark_out=s.json --benchmark_out_format=json)";

struct Sizes {
    std::vector<Index> tokens = {64, 512, 2048};
    std::vector<Index> widths = {256, 1024};
};

std::vector<Case> all_cases(const Sizes& sizes, int ranks) {
    std::vector<Case> cases;
    for (const Kind kind : {Kind::column, Kind::row, Kind::mlp})
        for (const Index tokens : sizes.tokens)
            for (const Index width : sizes.widths)
                for (int p = 1; p <= ranks; ++p)
                    cases.push_back({kind, tokens, width, p});
    return cases;
}

/// So many runs that a batch takes about 20 ms, longer than what a batch costs beside them.
Index runs_a_batch(Crew& crew, std::size_t which) {
    crew.measure(which, 1);
    const Measured first = crew.measure(which, 1);
    return std::clamp<Index>(Index(0.02 / std::max(first.seconds, first.alone)), 1, 1000);
}

void run_case(benchmark::State& state, Crew& crew, const Case& which, std::size_t number) {
    const Index runs = runs_a_batch(crew, number);
    std::vector<double> seconds, efficiencies;
    double bytes_sent = 0;
    while (state.KeepRunningBatch(runs)) {
        const Measured batch = crew.measure(number, runs);
        state.SetIterationTime(batch.seconds * double(runs));
        seconds.push_back(batch.seconds);
        efficiencies.push_back(batch.alone / (which.ranks * batch.seconds));
        bytes_sent = batch.bytes_sent;
    }
    state.counters["gflops_a_rank"] = which.flops() / which.ranks / bench::median(seconds) * 1e-9;
    state.counters["efficiency"] = bench::median(efficiencies);
    state.counters["bytes_sent"] = bytes_sent;
}

int run(const reigen::Communicator& world, const Sizes& sizes) {
    const std::vector<Case> cases = all_cases(sizes, world.size());
    Crew crew(world, cases);
    bench::run_rows(
        world, crew, cases.size(), benchmark::kMicrosecond, [&](std::size_t number) { return cases[number].name(); },
        [&](benchmark::State& state, std::size_t number) { run_case(state, crew, cases[number], number); });
    return 0;
}

} // namespace
} // namespace shard_sizes

int main(int argc, char** argv) {
    std::vector<char*> arguments(argv, argv + argc);
    if (!bench::read_benchmark_options(arguments))
        return 2;
    CLI::App app("Measures how well products split over ranks: run it with --ranks P, or under mpirun.", "shard_sizes");
    app.footer(shard_sizes::footer);
    shard_sizes::Sizes sizes;
    app.add_option("--tokens", sizes.tokens, "Rows of the activations")->delimiter(',')->check(CLI::PositiveNumber);
    app.add_option("--widths", sizes.widths, "Widths of the model")->delimiter(',')->check(CLI::PositiveNumber);
    return examples::run_program(app, int(arguments.size()), arguments.data(),
                                 [&](const reigen::Communicator& world) { return shard_sizes::run(world, sizes); });
}
