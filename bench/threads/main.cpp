#include "support/command_line.hpp"
#include "support/median.hpp"
#include "support/stopwatch.hpp"
#include "threads/cases.hpp"

#include <CLI/CLI.hpp>

#include <omp.h>

#include <cstdio>
#include <vector>

namespace {

struct Settings {
    int threads = omp_get_max_threads();
    int rounds = 7;
};

double seconds_on(int threads, const ThreadsCase& work) {
    omp_set_num_threads(threads);
    return bench::wall_seconds_of(work.run);
}

/// One thread and all of them take turns.
void measure(const ThreadsCase& work, const Settings& settings) {
    seconds_on(settings.threads, work);
    std::vector<double> alone, together, ratios;
    for (int round = 0; round < settings.rounds; ++round) {
        alone.push_back(seconds_on(1, work));
        together.push_back(seconds_on(settings.threads, work));
        ratios.push_back(alone.back() / together.back());
    }
    std::printf("%-58s  %8.1f  %9.1f  %8.2f\n", work.name.c_str(), work.flops / bench::median(alone) * 1e-9,
                work.flops / bench::median(together) * 1e-9, bench::median(ratios));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    Settings settings;
    CLI::App app(
        "Measures products and attention on several of OpenMP's threads against one, in turns, by the time on the\n"
        "wall: only an idle machine tells anything. Set OMP_PROC_BIND=true, so that each thread has a core.",
        "threads");
    app.add_option("--threads", settings.threads, "Threads that share the work")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--rounds", settings.rounds, "Of both in turn; the medians are printed")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    if (const auto code = bench::exit_code_of_parsing(app, argc, argv))
        return *code;
    std::printf("%-58s  %8s  %9s  %8s\n", "GFLOP/s", "1 thread",
                (std::to_string(settings.threads) + " threads").c_str(), "speed-up");
    for (const auto& make : threads_cases())
        measure(make(), settings);
}
