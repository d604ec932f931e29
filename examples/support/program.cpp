#include <support/program.hpp>

#include <support/checks.hpp>
#include <support/help_format.hpp>
#include <support/trace_option.hpp>
#include <support/world_options.hpp>

#include <reigen/comm/launcher.hpp>
#include <reigen/comm/threads.hpp>
#ifdef REIGEN_EXAMPLES_WITH_MPI
#include <reigen/comm/mpi.hpp>
#endif

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace examples {
namespace {

constexpr int usage_exit_code = 2;

/// One line on stderr, whatever the message holds.
int complain(const CLI::App& app, std::string message) {
    while (!message.empty() && message.back() == '\n')
        message.pop_back();
    std::replace(message.begin(), message.end(), '\n', ' ');
    std::cerr << app.get_name() + ": " + message + "\n" << std::flush;
    return usage_exit_code;
}

/// The words of the command line, the last first, as CLI11 wants them. `--name=` stands for an empty value; CLI11 would
/// take the next word for it, and another option with that.
std::vector<std::string> words_backwards(int argc, char** argv) {
    std::vector<std::string> words;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool without_value = word.starts_with("--") && word.size() > 3 && word.find('=') == word.size() - 1;
        words.push_back(without_value ? word.substr(0, word.size() - 1) : word);
        if (without_value)
            words.emplace_back();
    }
    std::reverse(words.begin(), words.end());
    return words;
}

/// The exit code with which the command line already ends the program, if it does.
std::optional<int> parse(CLI::App& app, int argc, char** argv, bool prints) {
    try {
        app.parse(words_backwards(argc, argv));
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        if (prints)
            std::cout << app.help() << std::flush;
        return 0;
    } catch (const CLI::ParseError& error) {
        if (prints)
            complain(app, std::string(error.what()) + " (--help lists the options)");
        return usage_exit_code;
    }
}

/// Whether all that was printed has gone where it should; a disk may be full.
bool printed() {
    return bool(std::cout.flush());
}

int run_body(const CLI::App& app, const RankBody& body, const reigen::Communicator& world) {
    try {
        const int code = body(world);
        if (world.rank() != 0 || printed())
            return code;
        complain(app, "writing to the standard output failed");
        return std::max(code, 1);
    } catch (const UsageError& error) {
        if (world.rank() == 0)
            complain(app, error.what());
        return usage_exit_code;
    }
}

int run_on_threads(const CLI::App& app, int ranks, const RankBody& body) {
    std::vector<int> codes(std::size_t(ranks), 0);
    try {
        reigen::run_threads(ranks, [&](const reigen::Communicator& world) {
            codes[std::size_t(world.rank())] = run_body(app, body, world);
        });
    } catch (const std::exception& error) {
        complain(app, error.what());
        return 1;
    }
    return *std::max_element(codes.begin(), codes.end());
}

#ifdef REIGEN_EXAMPLES_WITH_MPI
int run_on_launched_ranks(CLI::App& app, int argc, char** argv, const CLI::Option* ranks, const RankBody& body) {
    return reigen::mpi_main(argc, argv, [&](const reigen::Communicator& world) {
        const bool prints = world.rank() == 0;
        if (const auto early = parse(app, argc, argv, prints))
            return *early;
        if (ranks->count() == 0 || ranks->as<int>() == world.size())
            return run_body(app, body, world);
        if (prints)
            complain(app, "--ranks makes threads where there is no launcher; this one started " +
                              std::to_string(world.size()) + " ranks");
        return usage_exit_code;
    });
}
#else
int run_on_launched_ranks(CLI::App& app, int argc, char** argv, const CLI::Option* ranks, const RankBody& body) {
    if (reigen::launcher()->size() == 1) {
        const auto early = parse(app, argc, argv, true);
        return early ? *early : run_on_threads(app, ranks->as<int>(), body);
    }
    if (reigen::launcher()->rank() == 0)
        complain(app, "built without MPI, so it cannot join the launcher's ranks: build it where an MPI is found, or "
                      "start it by itself with --ranks P");
    return usage_exit_code;
}
#endif

} // namespace

bool started_by_launcher() {
    return reigen::launcher().has_value();
}

int run_program(CLI::App& app, int argc, char** argv, const RankBody& body) {
    int ranks = 1;
    const CLI::Option* const option = app.add_option("--ranks", ranks,
                                                     "Run on this many ranks as threads of this process; under mpirun "
                                                     "or srun the ranks are the launcher's")
                                          ->check(between(1, 1024))
                                          ->capture_default_str();
    WorldOptions watched;
    watched.declare(app);
    TraceOption trace;
    trace.declare(app);
    app.formatter(std::make_shared<HelpFormat>());
    for (CLI::Option* const each : app.get_options())
        if (each->get_expected_max() <= 1)
            each->take_last(); // so that scripts can add to a command
    const RankBody traced = [&](const reigen::Communicator& world) { return trace.run(watched.apply(world), body); };
    if (reigen::launcher())
        return run_on_launched_ranks(app, argc, argv, option, traced);
    if (const auto early = parse(app, argc, argv, true))
        return *early;
    return run_on_threads(app, ranks, traced);
}

} // namespace examples
