#include "failure/process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace programs_test {

// Starts failing_program as a user would and asks how it ends. REIGEN_TEST_EVERY_FAILURE=1 has every fault meet every
// operation under mpirun too (run_all.sh).

namespace {

namespace fs = std::filesystem;

constexpr double deadline = 1; // seconds

const std::vector<std::string> operations = {"all_reduce",   "all_gather",    "reduce_scatter", "broadcast",
                                             "all_to_all",   "barrier",       "split",          "messages",
                                             "ring_forward", "ring_backward", "linear"};

/// What a rank says of another one's size, in a message or in a collective through shared memory.
const std::string other_size = "(rank [0-2]: [0-9]+ bytes are sent, [0-9]+ are expected|"
                               ": rank [0-2] has [0-9]+ bytes, rank [0-2] [0-9]+|"
                               ": rank [0-2] gives [0-9]+ elements, rank [0-2] takes [0-9]+)\n";

struct Case {
    std::string operation;
    std::string fault;
};

std::vector<Case> each_operation_with(const std::string& fault) {
    std::vector<Case> cases;
    for (const std::string& operation : operations)
        if (fault != "shape" || (operation != "barrier" && operation != "split"))
            cases.push_back({operation, fault});
    return cases;
}

bool every_failure() {
    const char* const wanted = std::getenv("REIGEN_TEST_EVERY_FAILURE");
    return wanted != nullptr && std::string(wanted) == "1";
}

std::string on_threads(const Case& c, double seconds = deadline) {
    return std::string(REIGEN_FAILING_PROGRAM " 3 ") + c.operation + ' ' + c.fault + ' ' + std::to_string(seconds);
}

[[maybe_unused]] std::string under_mpi(const Case& c, double seconds = deadline) {
    return std::string(REIGEN_MPIEXEC " 3 " REIGEN_FAILING_PROGRAM " 0 ") + c.operation + ' ' + c.fault + ' ' +
           std::to_string(seconds);
}

/// Ends, by force if it must, which is a failure.
Outcome run(const std::string& environment, const std::string& command) {
    return Process("timeout -s KILL 60 env " + environment + ' ' + command).end();
}

int count(const std::string& text, const std::string& pattern) {
    const std::regex expression(pattern);
    return int(std::distance(std::sregex_iterator(text.begin(), text.end(), expression), std::sregex_iterator()));
}

/// Seconds from the fault to the end of the last process; the clock is the machine's.
double seconds_after_the_fault(const Outcome& outcome) {
    std::smatch at;
    const bool found = std::regex_search(outcome.output, at, std::regex("fails at ([0-9.]+) s"));
    return found ? outcome.ended - std::stod(at[1]) : outcome.seconds;
}

/// Runs the commands, a few at a time since they mostly wait, and looks at each outcome.
template <class Expect>
void run_all(const std::vector<Case>& cases, std::string (*command)(const Case&, double), Expect expect) {
    constexpr std::size_t at_once = 3;
    for (std::size_t first = 0; first < cases.size(); first += at_once) {
        std::vector<std::future<Outcome>> running;
        for (std::size_t i = first; i < std::min(first + at_once, cases.size()); ++i)
            running.push_back(
                std::async(std::launch::async, run, std::string("REIGEN_CHECKED=0"), command(cases[i], deadline)));
        for (std::size_t i = 0; i < running.size(); ++i) {
            const Outcome outcome = running[i].get();
            SCOPED_TRACE(command(cases[first + i], deadline) + "\n" + outcome.output);
            EXPECT_NE(outcome.status, 0);
            EXPECT_LT(seconds_after_the_fault(outcome), deadline + 5);
            expect(outcome.output);
        }
    }
}

void expect_on_threads(const std::string& fault, const std::string& words) {
    run_all(each_operation_with(fault), on_threads,
            [&](const std::string& output) { EXPECT_EQ(count(output, words), 1); });
}

/// One rank tells the cause for all, and no memory error comes between.
[[maybe_unused]] void expect_under_mpi(const std::string& fault, const std::vector<Case>& few,
                                       const std::string& words) {
    run_all(every_failure() ? each_operation_with(fault) : few, under_mpi, [&](const std::string& output) {
        EXPECT_EQ(count(output, words), 1);
        EXPECT_EQ(count(output, "\\[rank [0-9] of 3\\] "), fault == "killed" ? 0 : 1);
        EXPECT_EQ(count(output, "Signal: "), 0);
    });
}

bool is_alive(int process) {
    return kill(process, 0) == 0;
}

/// The files in the memory that processes share which this one has mapped, but for MPICH's own: 5.0 leaves one behind
/// each job that is interrupted or aborted, also those of plain C.
std::set<std::string> shared_memory_of(int process) {
    std::set<std::string> files;
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);)
        if (const auto at = line.find("/dev/shm/"); at != std::string::npos && line.find("/mpich_shm_") == line.npos)
            files.insert(line.substr(at));
    return files;
}

/// Those of the files that still exist.
std::vector<std::string> left_of(const std::set<std::string>& files) {
    std::vector<std::string> found;
    std::ranges::copy_if(files, std::back_inserter(found), [](const std::string& file) { return fs::exists(file); });
    return found;
}

/// Interrupts the command, as Ctrl-C does, once all have said that they are ready.
void expect_nothing_left_of(const std::string& command, int ranks) {
    std::signal(SIGINT, SIG_DFL); // a background job of a shell ignores it, and so would what is started here
    Process process("echo started $$; exec " + command);
    int started = 0;
    ASSERT_EQ(std::sscanf(process.line().c_str(), "started %d", &started), 1);
    std::vector<int> processes;
    for (int rank = 0; rank < ranks; ++rank) {
        const std::string line = process.line();
        ASSERT_EQ(std::sscanf(line.c_str(), "ready %d", &processes.emplace_back()), 1) << line;
    }
    std::set<std::string> shared;
    for (const int rank : processes)
        shared.merge(shared_memory_of(rank));
    kill(started, SIGINT);
    const Outcome outcome = process.end();
    EXPECT_NE(outcome.status, 0);
    EXPECT_LT(outcome.seconds, 15);
    const auto any_alive = [&] { return std::ranges::any_of(processes, is_alive); };
    for (int i = 0; i < 50 && any_alive(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(any_alive());
    EXPECT_EQ(left_of(shared), std::vector<std::string>());
}

} // namespace

TEST(failing_threads, a_rank_that_throws_ends_every_operation) {
    expect_on_threads("throws", "boom\n");
}

TEST(failing_threads, a_rank_that_returns_early_ends_every_operation) {
    expect_on_threads("returns", "rank 1 of 3 has returned\n");
}

TEST(failing_threads, a_rank_that_sleeps_for_ever_ends_every_operation) {
    expect_on_threads("sleeps", "rank 1 of 3 did not come back within 0.5 s after that; ending the process\n");
}

// EasyContext#10, pytorch#113376
TEST(failing_threads, a_rank_with_another_shape_ends_every_operation) {
    expect_on_threads("shape", other_size);
}

TEST(failing_threads, an_interrupt_leaves_nothing_behind) {
    expect_nothing_left_of(on_threads({"barrier", "interrupted"}, 30), 3);
}

TEST(failing_threads, under_checks_another_shape_is_the_same_error_at_once_on_every_rank) {
    for (const char* const operation : {"all_gather", "ring_backward", "linear"}) {
        const Outcome outcome = run("REIGEN_CHECKED=1", on_threads({operation, "shape"}, 30));
        SCOPED_TRACE(outcome.output);
        EXPECT_NE(outcome.status, 0);
        EXPECT_LT(outcome.seconds, 10);
        std::smatch first;
        ASSERT_TRUE(
            std::regex_search(outcome.output, first, std::regex("rank 0: (the ranks call different things.*)")));
        for (const char* const rank : {"rank 1: ", "rank 2: "})
            EXPECT_NE(outcome.output.find(rank + first[1].str() + '\n'), std::string::npos) << rank;
    }
}

#ifdef REIGEN_MPIEXEC

TEST(failing_mpi, a_rank_that_throws_ends_the_job) {
    expect_under_mpi("throws", {{"ring_backward", "throws"}, {"linear", "throws"}}, "\\[rank 1 of 3\\] boom\n");
}

TEST(failing_mpi, a_rank_that_returns_early_ends_the_job) {
    expect_under_mpi(
        "returns",
        {{"ring_forward", "returns"}, {"ring_backward", "returns"}, {"linear", "returns"}, {"barrier", "returns"}},
        "rank 1 (of 3 )?has returned");
}

TEST(failing_mpi, a_rank_that_sleeps_for_ever_ends_the_job) {
    expect_under_mpi("sleeps", each_operation_with("sleeps"),
                     "\\[rank [02] of 3\\] rank [02] of 3 waited [1-4][^ ]* s for .*; ranks? (0, )?1(, 2)? ha(s|ve) "
                     "neither failed nor returned\n");
}

// EasyContext#10, pytorch#113376
TEST(failing_mpi, a_rank_with_another_shape_ends_the_job) {
    expect_under_mpi("shape", {{"ring_backward", "shape"}, {"linear", "shape"}, {"all_to_all", "shape"}}, other_size);
}

TEST(failing_mpi, a_rank_that_is_killed_ends_the_job) {
    expect_under_mpi("killed", {{"ring_backward", "killed"}, {"linear", "killed"}}, "signal 9");
}

TEST(failing_mpi, an_interrupt_leaves_nothing_behind) {
    expect_nothing_left_of("env " REIGEN_MPIEXEC " 3 " REIGEN_FAILING_PROGRAM " 0 barrier interrupted 30", 3);
}

TEST(failing_mpi, under_checks_another_shape_is_the_same_error_at_once_on_every_rank) {
    const Outcome outcome = run("REIGEN_CHECKED=1", under_mpi({"ring_backward", "shape"}, 30));
    SCOPED_TRACE(outcome.output);
    EXPECT_NE(outcome.status, 0);
    EXPECT_LT(outcome.seconds, 10);
    std::smatch first;
    ASSERT_TRUE(std::regex_search(outcome.output, first, std::regex("rank 0: (the ranks call different things.*)")));
    for (const char* const rank : {"rank 1: ", "rank 2: "})
        EXPECT_NE(outcome.output.find(rank + first[1].str() + '\n'), std::string::npos) << rank;
    EXPECT_EQ(count(outcome.output, "\\[rank [0-9] of 3\\] "), 1);
}

TEST(failing_mpi, threads_in_every_process_of_a_launcher_are_refused) {
    const Outcome outcome = run("REIGEN_CHECKED=0", REIGEN_MPIEXEC " 2 " REIGEN_FAILING_PROGRAM " 3 barrier none 5");
    EXPECT_NE(outcome.status, 0);
    EXPECT_GE(count(outcome.output, "the launcher started 2 processes \\((OMPI_COMM_WORLD|PMI)_SIZE\\)"), 1)
        << outcome.output;
}

TEST(failing_mpi, without_a_fault_every_operation_goes_well) {
    const Outcome outcome = run("REIGEN_CHECKED=0", under_mpi({"linear", "none"}, 30));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "");
}

#endif

} // namespace programs_test
