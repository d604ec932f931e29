#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace bench {

/// Takes Google Benchmark's own options out of the command line and has it read them; false where it knows one not.
inline bool read_benchmark_options(std::vector<char*>& arguments) {
    const auto is_ours = [](const char* argument) {
        const std::string_view text = argument;
        return !text.starts_with("--benchmark") && !text.starts_with("--v=");
    };
    const auto theirs = std::stable_partition(arguments.begin() + 1, arguments.end(), is_ours);
    std::vector<char*> known = {arguments.front()};
    known.insert(known.end(), theirs, arguments.end());
    arguments.erase(theirs, arguments.end());
    int count = int(known.size());
    benchmark::Initialize(&count, known.data());
    return !benchmark::ReportUnrecognizedArguments(count, known.data());
}

} // namespace bench
