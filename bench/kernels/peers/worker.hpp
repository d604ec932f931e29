#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace peers {

/// Another program that answers each line with a line.
class Worker {
  public:
    /// Throws std::runtime_error where it cannot be started.
    explicit Worker(const std::vector<std::string>& command);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    /// Ends its input, upon which it ends.
    ~Worker();

    /// Throws std::runtime_error with what it answered instead, or that it ended, where the answer does not begin with
    /// "ok"; returns what follows that word.
    std::string ask(const std::string& line);

    /// On the core that this thread runs on, while the thread waits for it.
    std::string ask_on_this_core(const std::string& line);

  private:
    std::string name_;
    pid_t process_ = -1;
    int to_ = -1;
    int from_ = -1;
    std::string unread_;
};

} // namespace peers
