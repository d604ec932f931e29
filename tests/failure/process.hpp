#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include <sys/wait.h>

inline double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// How a command ended: its exit status, or 128 and the signal, all it wrote, how long it took, and when that was.
struct Outcome {
    int status = -1;
    std::string output;
    double seconds = 0;
    double ended = 0;
};

/// A command that runs, and what it writes.
class Process {
  public:
    explicit Process(const std::string& command) : pipe_(popen((command + " 2>&1").c_str(), "r")) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    ~Process() {
        if (pipe_ != nullptr)
            pclose(pipe_);
    }

    /// The next line, or "" at the end.
    std::string line() {
        std::string text;
        for (int c = std::fgetc(pipe_); c != EOF; c = std::fgetc(pipe_)) {
            text += char(c);
            if (c == '\n')
                break;
        }
        return text;
    }

    Outcome end() {
        Outcome outcome;
        for (std::string text = line(); !text.empty(); text = line())
            outcome.output += text;
        const int status = pclose(pipe_);
        pipe_ = nullptr;
        outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        outcome.ended = steady_seconds();
        outcome.seconds = outcome.ended - start_;
        return outcome;
    }

  private:
    double start_ = steady_seconds();
    FILE* pipe_;
};
