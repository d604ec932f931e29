#include "peers/worker.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace peers {
namespace {

/// Ends that children do not inherit.
struct Pipe {
    int out = -1;
    int in = -1;

    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
        out = ends[0];
        in = ends[1];
    }
};

pid_t spawn(const std::vector<std::string>& command, const Pipe& input, const Pipe& output) {
    std::vector<char*> arguments;
    for (const std::string& word : command)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.out, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.in, STDOUT_FILENO);
    pid_t process = -1;
    const int error = posix_spawnp(&process, arguments.front(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        throw std::runtime_error(command.front() + ": " + std::strerror(error));
    return process;
}

} // namespace

Worker::Worker(const std::vector<std::string>& command) : name_(command.front()) {
    signal(SIGPIPE, SIG_IGN); // a worker that ended is an answer that does not come
    const Pipe input, output;
    process_ = spawn(command, input, output);
    close(input.out);
    close(output.in);
    to_ = input.in;
    from_ = output.out;
}

Worker::~Worker() {
    close(to_);
    close(from_);
    waitpid(process_, nullptr, 0);
}

std::string Worker::ask(const std::string& line) {
    const std::string text = line + '\n';
    if (write(to_, text.data(), text.size()) != ssize_t(text.size()))
        throw std::runtime_error(name_ + " has ended");
    while (unread_.find('\n') == std::string::npos) {
        char buffer[512];
        const ssize_t count = read(from_, buffer, sizeof buffer);
        if (count == 0 || (count < 0 && errno != EINTR))
            throw std::runtime_error(name_ + " ended while it was asked to: " + line);
        unread_.append(buffer, std::size_t(std::max<ssize_t>(count, 0)));
    }
    const std::size_t end = unread_.find('\n');
    const std::string answer = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    if (!answer.starts_with("ok"))
        throw std::runtime_error(name_ + ": " + answer);
    return answer.size() > 3 ? answer.substr(3) : "";
}

std::string Worker::ask_on_this_core(const std::string& line) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(process_, sizeof here, &here);
    return ask(line);
}

} // namespace peers
