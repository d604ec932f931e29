#pragma once

#include "support/bandwidth.hpp"
#include "support/median.hpp"
#include "support/peak.hpp"
#include "support/stopwatch.hpp"

#include <reigen/core/types.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// One way to a row's result: ours, or somebody else's.
struct Contender {
    std::string name;                                  // "eigen", in whose turns vs_eigen is measured
    std::function<double(reigen::Index runs)> seconds; // processor time that so many runs take
    std::function<double()> error = {};                // of what the last run left; see LargestError
};

/// A contender that runs on this thread.
inline Contender on_this_thread(std::string name, std::function<void()> run, std::function<double()> error = {}) {
    const auto seconds = [run = std::move(run)](reigen::Index runs) {
        return seconds_of([&] {
            for (reigen::Index i = 0; i < runs; ++i)
                run();
        });
    };
    return {std::move(name), seconds, std::move(error)};
}

/// One row of a kernel benchmark.
struct Row {
    double flops;     // of one run
    double (*peak)(); // flops a second that the processor can do: multiply_add_peak<T>
    Contender ours;
    std::vector<Contender> peers = {};
    double streamed_bytes = 0; // read from memory by one run, where that is what bounds it
};

/// A row whose contenders have run: how often each runs a sample, about a millisecond, and what its error was.
class ReadyRow {
  public:
    ReadyRow(std::string name, Row row) : name_(std::move(name)), row_(std::move(row)) {
        ours_ = warmed_up(row_.ours);
        for (const Contender& peer : row_.peers)
            peers_.push_back(warmed_up(peer));
    }

    const std::string& name() const { return name_; }

    /// Ours, each peer, and bursts of what the processor can do, take turns, so that all meet the same machine.
    void measure(benchmark::State& state) const {
        Samples samples(peers_.size());
        while (state.KeepRunningBatch(ours_.runs))
            state.SetIterationTime(take_turns(samples) * double(ours_.runs));
        while (samples.speeds.size() < fewest_samples)
            take_turns(samples);
        report(samples, state);
    }

  private:
    static constexpr std::size_t fewest_samples = 5;
    static constexpr double hopeless = 10; // times slower than ours: such a peer takes no turns, its warm run stands

    struct WarmedUp {
        double seconds; // of one run
        reigen::Index runs;
        std::optional<double> error;
    };

    struct Samples {
        std::vector<double> speeds, of_peak, of_bandwidth;
        std::vector<std::vector<double>> ratios;
        explicit Samples(std::size_t peers) : ratios(peers) {}
    };

    static WarmedUp warmed_up(const Contender& contender) {
        const double cold = contender.seconds(1);
        const double seconds = cold < 1 ? contender.seconds(1) : cold;
        return {seconds, std::max<reigen::Index>(1, reigen::Index(1e-3 / seconds)),
                contender.error ? std::optional(contender.error()) : std::nullopt};
    }

    /// Returns seconds of one run of ours.
    double take_turns(Samples& samples) const {
        const double seconds = row_.ours.seconds(ours_.runs) / double(ours_.runs);
        samples.speeds.push_back(row_.flops / seconds);
        samples.of_peak.push_back(row_.flops / seconds / row_.peak());
        if (row_.streamed_bytes > 0)
            samples.of_bandwidth.push_back(row_.streamed_bytes / seconds / streaming_bandwidth());
        for (std::size_t p = 0; p < peers_.size(); ++p)
            samples.ratios[p].push_back(seconds_of_peer(p) / seconds);
        return seconds;
    }

    double seconds_of_peer(std::size_t p) const {
        const WarmedUp& peer = peers_[p];
        return peer.seconds > hopeless * ours_.seconds ? peer.seconds
                                                       : row_.peers[p].seconds(peer.runs) / double(peer.runs);
    }

    void report(const Samples& samples, benchmark::State& state) const {
        state.counters["gflops"] = median(samples.speeds) * 1e-9;
        state.counters["fraction_of_peak"] = median(samples.of_peak);
        if (!samples.of_bandwidth.empty()) {
            state.counters["gigabytes_a_second"] = median(samples.speeds) / row_.flops * row_.streamed_bytes * 1e-9;
            state.counters["fraction_of_bandwidth"] = median(samples.of_bandwidth);
        }
        if (ours_.error)
            state.counters["error"] = *ours_.error;
        for (std::size_t p = 0; p < peers_.size(); ++p) {
            state.counters["vs_" + row_.peers[p].name] = median(samples.ratios[p]);
            if (peers_[p].error)
                state.counters["error_" + row_.peers[p].name] = *peers_[p].error;
        }
    }

    std::string name_;
    Row row_;
    WarmedUp ours_{};
    std::vector<WarmedUp> peers_;
};

/// Registers a row, made when its turn comes and dropped when the next one's does: Google Benchmark runs each several
/// times to find out how long it takes.
///
/// Counters    gflops and fraction_of_peak; where bytes are streamed, gigabytes_a_second and fraction_of_bandwidth; for
///             each peer vs_NAME, our speed over its speed; error and error_NAME of those that know theirs. Speeds are
///             medians over samples.
inline void register_row(const std::string& name, const std::function<Row()>& make) {
    const auto run = [=](benchmark::State& state) {
        static std::optional<ReadyRow> current;
        if (!current || current->name() != name) {
            current.reset();
            current.emplace(name, make());
        }
        current->measure(state);
    };
    benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

} // namespace bench
