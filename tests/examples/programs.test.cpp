#include "process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

// REIGEN_EXAMPLE_PROGRAMS: their paths, separated by spaces; REIGEN_MPIEXEC: "mpirun -n", empty without MPI.

namespace {

std::vector<std::string> programs() {
    std::istringstream words(REIGEN_EXAMPLE_PROGRAMS);
    return {std::istream_iterator<std::string>(words), {}};
}

std::string name_of(const std::string& program) {
    return std::filesystem::path(program).filename().string();
}

std::string train_gpt() {
    const auto all = programs();
    return *std::find_if(all.begin(), all.end(), [](auto& program) { return name_of(program) == "train_gpt"; });
}

/// Lines on stderr that the program itself wrote: mpirun adds its own.
std::vector<std::string> complaints(const Process& process, const std::string& program) {
    auto result = lines(process.err);
    std::erase_if(result, [&](auto& line) { return !line.starts_with(name_of(program) + ": "); });
    return result;
}

void expect_one_complaint(const std::string& program, const std::string& options, const std::string& part) {
    const Process process = run_command(program + ' ' + options);
    EXPECT_EQ(process.exit_code, 2) << program << ' ' << options;
    EXPECT_EQ(lines(process.err).size(), 1U) << process.err;
    EXPECT_EQ(complaints(process, program).size(), 1U) << process.err;
    EXPECT_NE(process.err.find(part), std::string::npos) << process.err;
}

void expect_train_gpt_complains(const std::string& options, const std::string& part) {
    expect_one_complaint(train_gpt(), "--csv '' " + options, part);
}

} // namespace

TEST(programs, help_describes_every_option_and_gives_zero) {
    for (const std::string& program : programs()) {
        const Process process = run_command(program + " --help");
        EXPECT_EQ(process.exit_code, 0) << program;
        EXPECT_EQ(process.err, "") << program;
        EXPECT_NE(process.out.find("--ranks"), std::string::npos) << program;
        EXPECT_NE(process.out.find("Usage: " + name_of(program)), std::string::npos) << process.out;
        for (const std::string& line : lines(process.out))
            EXPECT_FALSE(line.starts_with("  --") && line.size() < 36) << program << " says nothing about" << line;
    }
}

TEST(programs, a_wrong_option_gives_one_line_and_two) {
    for (const std::string& program : programs()) {
        expect_one_complaint(program, "--no-such-option", "--no-such-option");
        expect_one_complaint(program, "--ranks 0", "--ranks");
        expect_one_complaint(program, "--ranks many", "--ranks");
    }
}

TEST(programs, a_job_under_mpirun_complains_once) {
    if (std::string(REIGEN_MPIEXEC).empty())
        return;
    for (const std::string& program : programs()) {
        const Process process = run_command(REIGEN_MPIEXEC " 3 " + program + " --no-such-option");
        EXPECT_EQ(process.exit_code, 2) << program;
        EXPECT_EQ(complaints(process, program).size(), 1U) << process.err;
        const Process help = run_command(REIGEN_MPIEXEC " 3 " + program + " --help");
        EXPECT_EQ(help.exit_code, 0) << program;
        EXPECT_EQ(help.out.find("Usage: "), help.out.rfind("Usage: ")) << help.out;
    }
}

TEST(programs, train_gpt_names_the_option_that_does_not_fit) {
    expect_train_gpt_complains("--layout spiral", "--layout");
    expect_train_gpt_complains("--dtype half", "--dtype");
    expect_train_gpt_complains("--steps 0", "--steps");
    expect_train_gpt_complains("--steps", "--steps");
    expect_train_gpt_complains("--mesh cp=2,tp=2", "is for 4 ranks, there is 1");
    expect_train_gpt_complains("--mesh cp", "dp=1,cp=2,tp=2");
    expect_train_gpt_complains("--ranks 3 --mesh tp=2", "is for 2 ranks, there are 3");
    expect_train_gpt_complains("--width 30 --heads 4", "--width 30");
    expect_train_gpt_complains("--width 12 --heads 4", "even");
    expect_train_gpt_complains("--heads 8 --kv-heads 3", "--kv-heads 3");
}

TEST(programs, train_gpt_names_the_text_it_cannot_use) {
    const auto folder = std::filesystem::temp_directory_path();
    const auto file = (folder / "reigen_programs_text").string();
    expect_train_gpt_complains("--text " + file + "_missing", "cannot read");
    expect_train_gpt_complains("--ranks 2 --text " + folder.string(), "is a folder");
    std::ofstream(file, std::ios::trunc).close();
    expect_train_gpt_complains("--ranks 3 --text " + file, "is empty");
    std::ofstream(file) << "short";
    expect_train_gpt_complains("--ranks 2 --text " + file, "5 bytes");
    const Process process = run_command(train_gpt() + " --csv /no/such/folder/loss.csv");
    EXPECT_EQ(process.exit_code, 2);
    EXPECT_EQ(lines(process.err).size(), 1U);
    std::filesystem::remove(file);
}

TEST(programs, of_an_option_given_twice_the_last_counts) {
    expect_train_gpt_complains("--verify --ranks 2 --verify --ranks 3 --mesh tp=3 --mesh tp=2", "there are 3");
}
