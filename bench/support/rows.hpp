#pragma once

#include <reigen/comm/communicator.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>

namespace bench {

/// Google Benchmark over the rows of a crew, whose ranks measure as rank 0 orders: `measure(state, row)` on rank 0, of the
/// rows that are called `name_of(row)`; the others follow.
template <class Crew, class NameOf, class Measure>
void run_rows(const reigen::Communicator& world, Crew& crew, std::size_t rows, benchmark::TimeUnit unit, NameOf name_of,
              Measure measure) {
    if (world.rank() > 0)
        return crew.follow();
    for (std::size_t row = 0; row < rows; ++row)
        benchmark::RegisterBenchmark(name_of(row).c_str(), [=](benchmark::State& state) { measure(state, row); })
            ->UseManualTime()
            ->Unit(unit);
    benchmark::AddCustomContext("ranks", std::to_string(world.size()));
    benchmark::AddCustomContext("instruction_set", reigen::instruction_set);
    benchmark::RunSpecifiedBenchmarks();
    crew.dismiss();
}

} // namespace bench
