#include "communication/contenders.hpp"
#include "support/median.hpp"
#include "support/orders.hpp"
#include "support/rows.hpp"
#include "support/stopwatch.hpp"

#include <reigen/mpi.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <string_view>

namespace communication {
namespace {

const char* const help = R"(communication: the collectives against MPI's own, on the ranks of mpirun.

Rows are named collective/type/bytes: of the whole vector, gathered, or before it is scattered; with /buffer where ours
works on a reigen::Buffer, as every matrix of the library does, instead of memory from anywhere. Ours and MPI's take turns
in the same run. Rank 0 fixes how often a row is run; times are those of the slowest rank, medians over the turns. From
64 KiB on each run is of memory that was just written.

  Time                 seconds of one of ours
  mpi                  of one of MPI's, in microseconds
  vs_mpi               our speed over MPI's
  fraction_of_memcpy   time in which one core copies, from memory that another one has just written, what a rank has to
                       read of the others at least, over our time; for 1 MiB and more, where memory is what bounds both

  mpirun -n 2 communication --benchmark_filter=all_reduce
  mpirun -n 2 communication --benchmark_min_time=0.05
  mpirun -n 2 communication --benchmark_out=c.json --benchmark_out_format=json

)";

constexpr Index long_bytes = 64 << 10;
constexpr Index refreshed_bytes = 64 << 10; // that lie in both cores' caches unless they are written between two runs

/// Seconds of one run.
struct Sample {
    double ours = 0;
    double mpi = 0;
    double copy = 0; // 0: not measured
};

/// A case set up on this rank.
class Row {
  public:
    Row(const Case& which, const reigen::Communicator& world)
        : world_(world),
          ours_(make_ours(which, world)),
          mpi_(make_mpi(which, world.size())),
          refresh_(which.bytes >= refreshed_bytes) {
        ours_->refresh();
        mpi_->refresh();
        if (which.bytes >= long_bytes && world.size() > 1)
            neighbour_.emplace(which, world);
    }

    /// Collective; the slowest rank's times.
    Sample measure(Index runs) {
        std::array<double, 3> seconds = {seconds_of_one(*ours_, runs), seconds_of_one(*mpi_, runs),
                                         neighbour_ ? neighbour_->seconds() : 0};
        world_.all_reduce(seconds, reigen::Reduction::max);
        return {seconds[0], seconds[1], seconds[2]};
    }

  private:
    double seconds_of_one(Contender& contender, Index runs) const {
        contender.run(); // so that all start together, with what they need in the caches
        return (refresh_ ? seconds_of_refreshed(contender, runs) : bench::wall_seconds_of([&] {
                   for (Index i = 0; i < runs; ++i)
                       contender.run();
               })) /
               double(runs);
    }

    /// Without the writing before each run, after which all start together.
    double seconds_of_refreshed(Contender& contender, Index runs) const {
        double seconds = 0;
        for (Index i = 0; i < runs; ++i) {
            contender.refresh();
            world_.barrier();
            seconds += bench::wall_seconds_of([&] { contender.run(); });
        }
        return seconds;
    }

    reigen::Communicator world_;
    std::unique_ptr<Contender> ours_;
    std::unique_ptr<Contender> mpi_;
    bool refresh_;
    std::optional<Neighbour> neighbour_;
};

/// Ranks that measure rows together, as rank 0 orders.
class Crew {
  public:
    explicit Crew(const reigen::Communicator& world)
        : world_(world), orders_(world_), cases_(all_cases(world.size())), current_(cases_.size()) {}

    const std::vector<Case>& cases() const { return cases_; }

    /// Rank 0.
    Sample measure(std::size_t which, Index runs) {
        orders_.give({which, runs});
        return carry_out({which, runs});
    }

    /// Rank 0: lets the others go.
    void dismiss() const { orders_.dismiss(); }

    /// The others: does what rank 0 orders until it lets them go.
    void follow() {
        orders_.follow([this](const bench::Order& order) { carry_out(order); });
    }

  private:
    Sample carry_out(const bench::Order& order) {
        if (order.which != current_) {
            row_.reset();
            row_.emplace(cases_[order.which], world_);
            current_ = order.which;
        }
        return row_->measure(order.runs);
    }

    reigen::Communicator world_;
    bench::Orders orders_;
    std::vector<Case> cases_;
    std::size_t current_;
    std::optional<Row> row_;
};

/// So many runs that a turn takes about a millisecond, or one run.
Index runs_a_turn(Crew& crew, std::size_t which) {
    crew.measure(which, 1);
    const Sample first = crew.measure(which, 3);
    return std::clamp<Index>(Index(1e-3 / std::max(first.ours, first.mpi)), 1, 1000);
}

void run_case(benchmark::State& state, Crew& crew, std::size_t which) {
    constexpr std::size_t fewest_turns = 7;
    const Index runs = runs_a_turn(crew, which);
    std::vector<double> ours, mpi, ratios, fractions;
    const auto take_turn = [&] {
        const Sample sample = crew.measure(which, runs);
        ours.push_back(sample.ours);
        mpi.push_back(sample.mpi);
        ratios.push_back(sample.mpi / sample.ours);
        if (sample.copy > 0)
            fractions.push_back(sample.copy / sample.ours);
        return sample.ours;
    };
    while (state.KeepRunningBatch(runs))
        state.SetIterationTime(take_turn() * double(runs));
    while (ours.size() < fewest_turns)
        take_turn();
    state.counters["median_us"] = bench::median(ours) * 1e6;
    state.counters["mpi_us"] = bench::median(mpi) * 1e6;
    state.counters["vs_mpi"] = bench::median(ratios);
    if (!fractions.empty())
        state.counters["fraction_of_memcpy"] = bench::median(fractions);
}

int run(const reigen::Communicator& world) {
    Crew crew(world);
    benchmark::AddCustomContext("mpi", reigen::mpi_version());
    bench::run_rows(
        world, crew, crew.cases().size(), benchmark::kMicrosecond,
        [&](std::size_t which) { return crew.cases()[which].name(); },
        [&](benchmark::State& state, std::size_t which) { run_case(state, crew, which); });
    return 0;
}

} // namespace
} // namespace communication

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]) == "--help")
            std::cout << communication::help << std::flush;
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    return reigen::mpi_main(argc, argv, communication::run);
}
