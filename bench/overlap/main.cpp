#include "overlap/crew.hpp"
#include "support/benchmark_options.hpp"
#include "support/rows.hpp"

#include <support/program.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace overlap {
namespace {

const char* const footer =
    R"(Each row is one step on all ranks, in five ways that take turns; rank 0 fixes how often. Times are those of the slowest
rank, and but for the column Time, which is a mean, the smallest of several turns; in seconds.

  time                      of a step whose messages travel under its computing
  plain                     of the same step, computing and messages one after the other; mlp: in the same bits
  computing                 of what a rank computes in it, on all ranks at once, without a message
  exposed                   (time - computing) / time: what of a step is communication that nothing hides
  exposed_plain             the same of plain
  parallel_efficiency       time of all the work on one rank, the others idle / (P x time)
  efficiency_of_busy_cores  time of all the work on each rank, all at once / (P x time): without what cores take from
                            each other by sharing caches, memory and power

  mlp               two linear layers with GELU between them, split over tp, forward and backward; the residual stream on
                    every rank, or split over tp by tokens (sequence parallelism)
  ring_attention    one causal sequence over cp in the zigzag layout; plain: keys and values gathered first, their
                    gradients summed last. wire:bfloat16: keys and values go round as that
  decode            one token through the projections of attention and two linear layers, with packed weights, split
                    over tp: two all-reduces, which nothing can hide
  same_bits         a product split along k over tp and its sum, in the bits that any number of ranks gives; plain: in
                    those of this one

Google Benchmark's own options choose rows and output:
  --benchmark_filter=mlp   --benchmark_min_time=0.5   --benchmark_out=o.json --benchmark_out_format=json)";

/// So many runs that a turn takes about 0.1 s.
Index runs_a_turn(Crew& crew, std::size_t which) {
    crew.measure(which, 1);
    return std::clamp<Index>(Index(0.1 / crew.measure(which, 1).overlapped), 1, 1000);
}

/// The smallest of each.
void keep_smallest(Seconds& best, const Seconds& turn) {
    for (double Seconds::* const way :
         {&Seconds::overlapped, &Seconds::plain, &Seconds::computing, &Seconds::alone, &Seconds::all_alone})
        best.*way = best.*way > 0 ? std::min(best.*way, turn.*way) : turn.*way;
}

void report(benchmark::State& state, const Seconds& best, int ranks) {
    state.counters["time"] = best.overlapped;
    state.counters["plain"] = best.plain;
    state.counters["computing"] = best.computing;
    state.counters["exposed"] = (best.overlapped - best.computing) / best.overlapped;
    state.counters["exposed_plain"] = (best.plain - best.computing) / best.plain;
    state.counters["parallel_efficiency"] = best.alone / (ranks * best.overlapped);
    state.counters["efficiency_of_busy_cores"] = best.all_alone / (ranks * best.overlapped);
}

void run_case(benchmark::State& state, Crew& crew, std::size_t which, int ranks) {
    constexpr int fewest_turns = 5;
    const Index runs = runs_a_turn(crew, which);
    Seconds best;
    int turns = 0;
    const auto take_turn = [&] {
        const Seconds turn = crew.measure(which, runs);
        keep_smallest(best, turn);
        ++turns;
        return turn.overlapped;
    };
    while (state.KeepRunningBatch(runs))
        state.SetIterationTime(take_turn() * double(runs));
    while (turns < fewest_turns)
        take_turn();
    report(state, best, ranks);
}

int run(const reigen::Communicator& world, const MlpSizes& mlp, const AttentionSizes& attention, Index decoded) {
    std::vector<Case> cases;
    for (std::vector<Case>& rows :
         std::vector{mlp_cases(mlp, world.size()), ring_attention_cases(attention, world.size()),
                     decode_cases(decoded, world.size()), same_bits_cases(mlp, world.size())})
        std::move(rows.begin(), rows.end(), std::back_inserter(cases));
    Crew crew(world, cases);
    bench::run_rows(
        world, crew, cases.size(), benchmark::kMillisecond, [&](std::size_t which) { return cases[which].name; },
        [&](benchmark::State& state, std::size_t which) { run_case(state, crew, which, world.size()); });
    return 0;
}

} // namespace
} // namespace overlap

int main(int argc, char** argv) {
    std::vector<char*> arguments(argv, argv + argc);
    if (!bench::read_benchmark_options(arguments))
        return 2;
    CLI::App app("Measures how much of their communication steps hide: run it under mpirun, or with --ranks P.",
                 "overlap");
    app.footer(overlap::footer);
    overlap::MlpSizes mlp;
    overlap::AttentionSizes attention;
    reigen::Index decoded = 4096;
    const auto size = [&](const char* name, reigen::Index& value, const char* what) {
        app.add_option(name, value, what)->check(CLI::PositiveNumber)->capture_default_str();
    };
    size("--tokens", mlp.tokens, "Of the MLP");
    size("--width", mlp.width, "Of the MLP's residual stream");
    size("--hidden", mlp.hidden, "Features between its layers");
    size("--length", attention.length, "Tokens of the sequence");
    size("--heads", attention.heads, "Of the attention");
    size("--head-dim", attention.head_dim, "Of each of them");
    size("--decoded", decoded, "Features of the token that is decoded");
    return examples::run_program(app, int(arguments.size()), arguments.data(), [&](const reigen::Communicator& world) {
        return overlap::run(world, mlp, attention, decoded);
    });
}
