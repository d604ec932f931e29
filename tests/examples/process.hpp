#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

/// What a program did: its exit code and all it wrote.
struct Process {
    int exit_code = -1;
    std::string out;
    std::string err;
};

/// The lines of a text.
inline std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find('\n', begin), text.size());
        result.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return result;
}

/// Runs a shell command to its end.
inline Process run_command(const std::string& command) {
    const auto errors = std::filesystem::temp_directory_path() / ("reigen_stderr_" + std::to_string(getpid()));
    Process process;
    FILE* const pipe = popen((command + " 2>" + errors.string()).c_str(), "r");
    std::array<char, 4096> part{};
    while (const auto count = std::fread(part.data(), 1, part.size(), pipe))
        process.out.append(part.data(), count);
    const int status = pclose(pipe);
    process.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::ifstream file(errors);
    process.err.assign(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(errors);
    return process;
}
