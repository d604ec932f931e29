#pragma once

#include "support/peak.hpp"
#include "support/stopwatch.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace bench {

inline double median(std::vector<double> samples) {
    const auto middle = samples.begin() + std::ptrdiff_t(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

/// Somebody else's way to the same result.
struct Peer {
    std::string counter; // "vs_eigen"
    std::function<void()> run;
};

/// One row of a kernel benchmark: ours, each peer and a burst of the peak take turns, so that all meet the same
/// machine.
///
/// Counters    gflops; fraction_of_peak, of the multiply-add peak of T; and for each peer our speed over its speed.
///             All are medians over the samples; a sample repeats a short kernel for about a millisecond.
template <class T>
void compare(benchmark::State& state, double flops, const std::function<void()>& ours, const std::vector<Peer>& peers) {
    ours();
    const auto repeats = std::max<benchmark::IterationCount>(1, benchmark::IterationCount(1e-3 / seconds_of(ours)));
    const auto seconds_a_run = [&](const std::function<void()>& run) {
        return seconds_of([&] {
                   for (benchmark::IterationCount i = 0; i < repeats; ++i)
                       run();
               }) /
               double(repeats);
    };
    std::vector<double> speeds, fractions;
    std::vector<std::vector<double>> ratios(peers.size());
    while (state.KeepRunningBatch(repeats)) {
        const double seconds = seconds_a_run(ours);
        state.SetIterationTime(seconds * double(repeats));
        speeds.push_back(flops / seconds);
        fractions.push_back(flops / seconds / multiply_add_peak<T>());
        for (std::size_t p = 0; p < peers.size(); ++p)
            ratios[p].push_back(seconds_a_run(peers[p].run) / seconds);
    }
    state.counters["gflops"] = median(speeds) * 1e-9;
    state.counters["fraction_of_peak"] = median(fractions);
    for (std::size_t p = 0; p < peers.size(); ++p)
        state.counters[peers[p].counter] = median(ratios[p]);
}

} // namespace bench
