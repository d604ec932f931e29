#include "support/peak.hpp"
#include "families.hpp"
#include "support/bandwidth.hpp"
#include "support/median.hpp"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace {

/// The bursts that every other row is compared with, alone.
void register_burst(const std::string& name, const std::string& counter, double (*speed)()) {
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        std::vector<double> speeds;
        for (auto step : state) {
            (void)step;
            speeds.push_back(speed());
        }
        state.counters[counter] = bench::median(speeds) * 1e-9;
    });
}

} // namespace

void register_peak() {
    register_burst("peak/float", "gflops", bench::multiply_add_peak<float>);
    register_burst("peak/double", "gflops", bench::multiply_add_peak<double>);
    register_burst("peak/bfloat16", "gflops", bench::multiply_add_peak<reigen::bfloat16>);
    register_burst("peak/bandwidth", "gigabytes_a_second", bench::streaming_bandwidth);
}
