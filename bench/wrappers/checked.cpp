#include "wrappers.hpp"

#include <reigen/comm/checked.hpp>
#include <reigen/comm/threads.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using reigen::Communicator;

/// Seconds of one call on this rank, waiting included: the median of some.
template <class Call>
double median_seconds(std::vector<double>& seconds, const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    std::ranges::nth_element(seconds, seconds.begin() + std::ptrdiff_t(seconds.size() / 2));
    return seconds[seconds.size() / 2];
}

/// Both in turns, so that what else the machine does meets both.
template <class Call>
void measure(const char* name, int ranks, const Call& call) {
    reigen::run_threads(ranks, [&](const Communicator& world) {
        const Communicator compared = reigen::checked(world);
        std::vector<double> of_plain, of_checked;
        double plain = 0, checked = 0;
        for (int turn = 0; turn < 501; ++turn) {
            plain = median_seconds(of_plain, [&] { call(world); });
            checked = median_seconds(of_checked, [&] { call(compared); });
        }
        if (world.rank() == 0)
            std::printf("%-28s %8.1f us   %8.1f us   %6.1f us\n", name, 1e6 * plain, 1e6 * checked,
                        1e6 * (checked - plain));
    });
}

} // namespace

void measure_checked() {
    std::puts("Checked: medians of the time of one call, and what the check adds; ranks are threads");
    std::printf("%-28s %11s   %11s   %9s\n", "", "plain", "checked", "added");
    for (const int ranks : {2, 4}) {
        std::printf("%d ranks\n", ranks);
        measure("  barrier", ranks, [](const Communicator& world) { world.barrier(); });
        measure("  all_reduce of 64 floats", ranks,
                [](const Communicator& world) { world.all_reduce(std::vector<float>(64)); });
        measure("  all_reduce of 262144 floats", ranks, [](const Communicator& world) {
            static thread_local std::vector<float> values(262144);
            world.all_reduce(values);
        });
    }
}
