#include "process.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include <sys/stat.h>

namespace programs_test {

// REIGEN_EXAMPLE_PROGRAMS: their paths, separated by spaces; REIGEN_MPIEXEC: "mpirun -n", empty without MPI.

namespace {

std::vector<std::string> programs() {
    std::istringstream words(REIGEN_EXAMPLE_PROGRAMS);
    return {std::istream_iterator<std::string>(words), {}};
}

std::string name_of(const std::string& program) {
    return std::filesystem::path(program).filename().string();
}

std::string program_named(const std::string& name) {
    const auto all = programs();
    return *std::find_if(all.begin(), all.end(), [&](auto& program) { return name_of(program) == name; });
}

std::string train_gpt() {
    return program_named("train_gpt");
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

// ring_attention and own_loop have each a main of their own kind.
TEST(programs, trace_writes_a_file_and_prints_a_summary) {
    const auto file = (std::filesystem::temp_directory_path() / "reigen_programs_trace.json").string();
    for (const std::string& program : programs()) {
        if (name_of(program) != "ring_attention" && name_of(program) != "own_loop")
            continue;
        std::vector<std::string> commands = {program + " --ranks 2 --trace " + file};
        if (!std::string(REIGEN_MPIEXEC).empty())
            commands.push_back(REIGEN_MPIEXEC " 2 " + program + " --trace " + file);
        for (const std::string& command : commands) {
            std::filesystem::remove(file);
            const Process process = run_command(command);
            EXPECT_EQ(process.exit_code, 0) << command << process.err;
            EXPECT_NE(process.out.find("Trace of 2 ranks in " + file), std::string::npos) << process.out;
            EXPECT_NE(process.out.find("waited for"), std::string::npos) << process.out;
            const auto trace = nlohmann::json::parse(std::ifstream(file), nullptr, false);
            ASSERT_FALSE(trace.is_discarded()) << command;
            EXPECT_GT(trace["traceEvents"].size(), 20U);
        }
        expect_one_complaint(program, "--ranks 2 --trace /no/such/folder/trace.json", "cannot write");
    }
    std::filesystem::remove(file);
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
    expect_train_gpt_complains("--wire float16", "--wire: want unchanged|bfloat16");
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

// Of every program: what is no number, what is none that the option takes, what nothing can hold.
TEST(programs, wrong_options_of_every_program_give_one_line_and_two) {
    struct WrongOption {
        const char *program, *options, *words;
    };
    constexpr const char* none_of_these = "";
    const std::vector<WrongOption> table = {
        {none_of_these, "--ranks 1025", "--ranks"},
        {none_of_these, "--ranks -1", "--ranks"},
        {none_of_these, "--ranks 99999999999999999999", "--ranks"},
        {none_of_these, "--ranks", "--ranks"},
        {none_of_these, "--ranks ''", "--ranks"},
        {none_of_these, "one", "one"},
        {"split_matrix", "--split diagonals", "diagonals"},
        {"own_loop", "--samples 0", "--samples"},
        {"own_loop", "--hidden -3", "--hidden"},
        {"own_loop", "--inputs 1.5", "--inputs"},
        {"own_loop", "--outputs 99999999999", "--outputs"},
        {"own_loop", "--rate nan", "--rate"},
        {"own_loop", "--rate inf", "--rate"},
        {"own_loop", "--rate 0", "--rate"},
        {"own_loop", "--samples 2000000000 --hidden 2000000000", "features 2e+09"},
        {"ring_attention", "--tokens 0", "--tokens"},
        {"ring_attention", "--tokens 9223372036854775807", "--tokens 9.22337e+18"},
        {"ring_attention", "--batch 4294967296 --tokens 4294967296", "--batch 4.29497e+09 x --tokens 4.29497e+09"},
        {"ring_attention", "--heads 4 --kv-heads 3", "--kv-heads 3"},
        {"ring_attention", "--heads 2 --kv-heads 4", "--kv-heads 4"},
        {"ring_attention", "--head-dim -8", "--head-dim"},
        {"ring_attention", "--layout spiral", "spiral"},
        {"ring_attention", "--mask window --window -1", "--window"},
        {"ring_attention", "--window 3", "--mask window only"},
        {"ring_attention", "--layout zigzag --stripe 2", "--layout striped only"},
        {"ring_attention", "--layout striped --stripe 0", "--stripe"},
        {"ring_attention", "--dtype bfloat16", "bfloat16"},
        {"ring_attention", "--seed -1", "--seed"},
        {"train_gpt", "--steps -5", "--steps"},
        {"train_gpt", "--steps 1e300", "--steps"},
        {"train_gpt", "--steps 9223372036854775807", "--steps 9.22337e+18 is more"},
        {"train_gpt", "--batch 3000000 --context 3000000", "--context 3e+06"},
        {"train_gpt", "--width 4611686018427387904", "--width 4.61169e+18"},
        {"train_gpt", "--hidden -1", "--hidden"},
        {"train_gpt", "--learning-rate nan", "--learning-rate"},
        {"train_gpt", "--learning-rate inf", "--learning-rate"},
        {"train_gpt", "--learning-rate -0.1", "--learning-rate"},
        {"train_gpt", "--weight-decay nan", "--weight-decay"},
        {"train_gpt", "--clip -1", "--clip"},
        {"train_gpt", "--dropout 1", "--dropout"},
        {"train_gpt", "--temperature -1", "--temperature"},
        {"train_gpt", "--mesh dp=2,dp=2", "names dp twice"},
        {"train_gpt", "--mesh pp=2", "pp=2"},
        {"train_gpt", "--mesh tp=0", "tp=0"},
        {"train_gpt", "--mesh tp=1,", "found ''"},
        {"train_gpt", "--mesh tp=1,,cp=1", "found ''"},
        {"train_gpt", "--mesh tp=-1", "tp=-1"},
        {"train_gpt", "--mesh dp=65536,cp=65536,tp=65536", "is for 281474976710656 ranks"},
        {"train_gpt", "--mesh dp=2147483647,cp=2147483647,tp=3", "is for 9223372036854775807 ranks"},
    };
    for (const std::string& program : programs())
        for (const auto& [of_program, options, words] : table)
            if (of_program == std::string(none_of_these) || name_of(program) == of_program)
                expect_one_complaint(program, options, words);
}

// Root may read what it has no right to, so: a file that opens and cannot be read, and one without end.
TEST(programs, train_gpt_names_the_text_that_no_right_opens) {
    expect_train_gpt_complains("--ranks 2 --text /proc/self/mem", "cannot read /proc/self/mem: Input/output error");
    expect_train_gpt_complains("--ranks 2 --text /dev/zero", "/dev/zero is a device");
    expect_train_gpt_complains("--text /dev/null", "/dev/null is a device");
    expect_train_gpt_complains("--text ''/etc/hostname/x", "cannot read");
    expect_train_gpt_complains("--csv /", "cannot write /");

    const auto pipe = std::filesystem::temp_directory_path() / ("reigen_pipe_" + std::to_string(getpid()));
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    expect_train_gpt_complains("--text " + pipe.string(), "a pipe, not a file"); // nobody writes into it
    std::filesystem::remove(pipe);
}

TEST(programs, an_option_with_an_empty_value_takes_no_other_for_it) {
    expect_train_gpt_complains("--csv= --no-such-option", "--no-such-option");
    expect_train_gpt_complains("--csv= --ranks=0", "--ranks");
    expect_train_gpt_complains("--steps=", "--steps");
}

TEST(programs, an_empty_name_is_no_wish_for_what_is_done_without_one) {
    expect_train_gpt_complains("--text ''", "--text: want the name of a file");
    expect_train_gpt_complains("--trace=", "--trace: want the name of a file");
    expect_train_gpt_complains("--mesh ''", "--mesh: want something like dp=1");
}

TEST(programs, train_gpt_refuses_a_seed_of_more_than_64_bits) {
    expect_train_gpt_complains("--seed 18446744073709551616", "2^64 - 1");
    expect_train_gpt_complains("--seed -1", "2^64 - 1");
    expect_train_gpt_complains("--seed 1.5", "2^64 - 1");
}

TEST(programs, train_gpt_refuses_to_audit_more_rows_than_it_can_count) {
    expect_train_gpt_complains("--audit 18446744073709551616", "--audit 9.22337e+18 is more than this program can");
}

TEST(programs, what_cannot_be_written_to_its_end_gives_one) {
    const std::string one_step =
        train_gpt() + " --ranks 2 --steps 1 --layers 1 --width 16 --heads 2 --kv-heads 1 --context 16 --sample 0 ";
    for (const std::string file : {"--csv /dev/full", "--csv '' --trace /dev/full"}) {
        const Process process = run_command(one_step + file);
        EXPECT_EQ(process.exit_code, 1) << process.err;
        EXPECT_NE(process.out.find("not complete"), std::string::npos) << process.out;
    }
    const Process process = run_command(one_step + "--csv '' >/dev/full");
    EXPECT_EQ(process.exit_code, 1);
    EXPECT_EQ(complaints(process, train_gpt()).size(), 1U) << process.err;
    EXPECT_EQ(run_command(one_step + "--csv '' --trace /dev/null").exit_code, 0);
}

TEST(programs, own_loop_tells_of_what_it_could_not_write) {
    const std::string own_loop = program_named("own_loop") + " --ranks 2 --steps 2 ";
    const Process trace = run_command(own_loop + "--trace /dev/full");
    EXPECT_EQ(trace.exit_code, 1);
    EXPECT_NE(trace.out.find("not complete"), std::string::npos) << trace.out;
    const Process losses = run_command(own_loop + ">/dev/full");
    EXPECT_EQ(losses.exit_code, 1);
    EXPECT_NE(losses.err.find("writing to the standard output failed"), std::string::npos) << losses.err;
}

TEST(programs, an_error_of_the_ranks_is_one_line_and_gives_one) {
    for (const std::string& program : programs()) {
        const Process process = run_command("env REIGEN_CHECKED=off " + program + " --ranks 2");
        EXPECT_EQ(process.exit_code, 1) << program;
        EXPECT_EQ(lines(process.err).size(), 1U) << process.err;
        EXPECT_NE(process.err.find("REIGEN_CHECKED is neither 0 nor 1"), std::string::npos) << process.err;
    }
}

TEST(programs, every_program_can_be_watched) {
    for (const std::string& program : programs())
        expect_one_complaint(program, "--ranks 2 --checked --deadline -1", "--deadline: want a number >= 0");
}

TEST(programs, of_an_option_given_twice_the_last_counts) {
    expect_train_gpt_complains("--verify --ranks 2 --verify --ranks 3 --mesh tp=3 --mesh tp=2", "there are 3");
}

namespace {

/// Some words that nobody edits meanwhile.
std::string fixed_text() {
    const auto file = std::filesystem::temp_directory_path() / "reigen_fixed_text";
    std::ofstream stream(file);
    for (int i = 0; i < 200; ++i)
        stream << "The " << i << "th of " << i * i << " words, and so on.\n";
    return file.string();
}

const std::string small_model = " --dtype double --layers 1 --width 24 --heads 6 --kv-heads 2 --context 31 --batch 3 "
                                "--steps 25 --warm-up 2 --sample 50 --text " +
                                fixed_text() + ' ';

/// What train_gpt prints, from the line that starts with this word.
std::string printed_from(const std::string& word, const std::string& options) {
    const Process process = run_command(train_gpt() + small_model + options);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    const auto begin = process.out.find("\n" + word);
    EXPECT_NE(begin, std::string::npos) << process.out;
    return process.out.substr(std::min(begin, process.out.size()));
}

} // namespace

TEST(programs, train_gpt_says_the_same_on_every_mesh_from_the_held_out_loss_to_the_sample) {
    const std::string one = printed_from("held out", "--csv ''");
    EXPECT_GE(lines(one.substr(one.find("------------"))).size(), 3U) << one;
    for (const std::string mesh : {"--ranks 3", "--ranks 4 --mesh dp=2,cp=2 --layout zigzag",
                                   "--ranks 4 --mesh cp=2,tp=2 --layout striped --sequence-parallel"})
        EXPECT_EQ(printed_from("held out", "--csv '' " + mesh), one) << mesh;
}

TEST(programs, train_gpt_writes_a_line_a_step_into_its_csv) {
    const auto file = (std::filesystem::temp_directory_path() / "reigen_loss.csv").string();
    run_command(train_gpt() + small_model + "--ranks 2 --sample 0 --csv " + file);
    std::ifstream stream(file);
    const auto rows = lines(std::string(std::istreambuf_iterator<char>(stream), {}));
    ASSERT_EQ(rows.size(), 26U);
    EXPECT_EQ(rows[0], "step,tokens,loss,learning_rate,gradient_norm,seconds");
    EXPECT_TRUE(rows[25].starts_with("25,2325,")) << rows[25];
    for (const std::string& row : rows)
        EXPECT_EQ(std::count(row.begin(), row.end(), ','), 5) << row;
    std::filesystem::remove(file);
}

TEST(programs, the_ledger_lists_every_parameter) {
    const Process process = run_command(train_gpt() + small_model + "--ranks 3 --sample 0 --csv '' --ledger");
    for (const std::string name :
         {"embedding.weight", "blocks.0.attention.qkv.weight", "blocks.0.mlp.down.bias", "norm.scale", "head.weight"})
        EXPECT_NE(process.out.find("\n" + name), std::string::npos) << name;
}

} // namespace programs_test
