#pragma once

#include <reigen/comm/checked.hpp>
#include <reigen/comm/launcher.hpp>
#include <reigen/comm/threads/backend.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

struct ThreadOptions {
    double deadline = 300; // seconds a rank waits for another, 0 = for ever
    double patience = 4;   // seconds the others have to come back once a rank has failed
    bool alone = false;    // each process of a launcher that starts several, without MPI, is to have ranks of its own
};

namespace detail {

/// Runs one body on a crew of threads and waits for them.
class ThreadRun {
  public:
    ThreadRun(int ranks, const std::function<void(const Communicator&)>& body, ThreadOptions options)
        : body_(body), options_(options), crew_(std::make_shared<Crew>(ranks)), hub_(world_of(crew_)) {}

    void run() {
        threads_.reserve(std::size_t(crew_->size()));
        for (int rank = 0; rank < crew_->size(); ++rank)
            start_rank(rank);
        wait_for_all();
        for (std::thread& thread : threads_)
            thread.join();
        if (const auto exception = crew_->exception())
            std::rethrow_exception(exception);
    }

  private:
    static std::shared_ptr<ThreadHub> world_of(const std::shared_ptr<Crew>& crew) {
        std::vector<int> ranks(std::size_t(crew->size()));
        std::iota(ranks.begin(), ranks.end(), 0);
        return std::make_shared<ThreadHub>(crew, std::move(ranks));
    }

    /// A rank for which the system has no thread fails, and with it the others.
    void start_rank(int rank) {
        try {
            threads_.emplace_back([this, rank] { run_rank(rank); });
        } catch (const std::system_error& error) {
            const std::string words =
                concat("run_threads: rank ", rank, " of ", crew_->size(), " cannot be started: ", error.what());
            crew_->fail(rank, std::make_exception_ptr(Error(words)), words);
            finish_rank(rank);
        }
    }

    void run_rank(int rank) noexcept {
        try {
            const Communicator world(
                as_environment_says(std::make_shared<ThreadBackend>(hub_, rank), environment_wants_checks()));
            world.set_deadline(options_.deadline);
            body_(world);
        } catch (...) {
            crew_->fail(rank, std::current_exception(), message_of(std::current_exception()));
        }
        registry().close();
        finish_rank(rank);
    }

    void finish_rank(int rank) {
        crew_->leave(rank);
        const std::lock_guard lock(mutex_);
        ++finished_;
        changed_.notify_one();
    }

    /// Without a limit as long as nobody has failed; then with one, since a rank that computes for ever hears nothing.
    void wait_for_all() {
        const auto all_back = [this] { return finished_ == crew_->size(); };
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return all_back() || crew_->failed(); });
        if (!changed_.wait_for(lock, std::chrono::duration<double>(options_.patience), all_back))
            end_process();
    }

    [[noreturn]] void end_process() const {
        std::string missing;
        for (int rank = 0; rank < crew_->size(); ++rank)
            if (!crew_->has_left(rank))
                missing += concat(missing.empty() ? "" : ", ", rank);
        const std::string text =
            concat(crew_->reason(), "\nrank ", missing, " of ", crew_->size(), " did not come back within ",
                   options_.patience, " s after that; ending the process\n");
        if (ftrylockfile(stdout) == 0) // which the missing rank may hold
            std::fflush(stdout);
        std::fputs(text.c_str(), stderr);
        std::_Exit(EXIT_FAILURE);
    }

    const std::function<void(const Communicator&)>& body_;
    ThreadOptions options_;
    std::shared_ptr<Crew> crew_;
    std::shared_ptr<ThreadHub> hub_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int finished_ = 0;
};

} // namespace detail

/// Runs `body(communicator)` on `ranks` threads of this process, one rank each, and returns when all have returned.
///
/// A rank that throws, or that returns while others still wait for it, wakes them; they throw `PeerError`.
/// Throws  ArgumentError under a launcher that started several processes, unless MPI has brought them together or
///         `options.alone` is set; Error where the system has too few threads; what the first rank to fail threw, once
///         all have come back; a rank that does not come back within `options.patience` seconds after a failure is
///         reported and ends the process, since a thread cannot be stopped
inline void run_threads(int ranks, const std::function<void(const Communicator&)>& body, ThreadOptions options = {}) {
    require(ranks >= 1, "run_threads: ", ranks, " ranks; want 1 or more");
    require(options.deadline >= 0, "run_threads: a deadline of ", options.deadline, " s; want 0 (none) or more");
    require(options.patience >= 0 && options.patience <= 1e9, "run_threads: a patience of ", options.patience,
            " s; want 0 to 1e9");
    if (!options.alone)
        detail::check_threads_under_launcher(ranks);
    detail::ThreadRun(ranks, body, options).run();
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
