#include "families.hpp"
#include "support/comparison.hpp"

namespace {

/// The burst that every other row is compared with, alone: gflops.
template <class T>
void peak(benchmark::State& state) {
    std::vector<double> speeds;
    for (auto step : state) {
        (void)step;
        speeds.push_back(bench::multiply_add_peak<T>());
    }
    state.counters["gflops"] = bench::median(speeds) * 1e-9;
}

} // namespace

void register_peak() {
    benchmark::RegisterBenchmark("peak/float", peak<float>);
    benchmark::RegisterBenchmark("peak/double", peak<double>);
}
