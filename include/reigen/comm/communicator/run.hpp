#pragma once

#include <reigen/comm/communicator/registry.hpp>
#include <reigen/comm/deadline.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// How a waiting rank passes the time: it spins for a moment, then leaves its core to others between looks, and after
/// a millisecond sleeps for 50 us at a time.
inline void rest(double waited) {
    if (waited > 1e-3)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (waited > 5e-6)
        std::this_thread::yield();
}

/// Which ranks of the world a group's are, where that is not the same number: ", in the group of the ranks 1, 3".
inline std::string members_of(const Backend& group) {
    constexpr int longest = 16;
    std::string text;
    bool numbered_otherwise = false;
    for (int rank = 0; rank < group.size(); ++rank) {
        const int origin = group.origin(rank);
        numbered_otherwise = numbered_otherwise || origin != rank;
        if (rank < longest)
            text += concat(rank == 0 ? ", in the group of the ranks " : ", ", origin);
    }
    if (!numbered_otherwise)
        return "";
    return group.size() > longest ? text + ", ..." : text;
}

[[gnu::cold]] inline void end_by_deadline(Task& task, double waited) {
    const Backend& backend = *task.state().backend;
    task.end(std::make_exception_ptr(TimeoutError(concat("rank ", backend.rank(), " of ", backend.size(), " waited ",
                                                         waited, " s for ", task.waits_for(), members_of(backend)))));
}

/// Moves everything of this rank until the task is done, by itself or at the deadline. It looks once more after the
/// deadline, so a rank that was itself held up does not give up what has come meanwhile.
inline void advance_until_done(Task& task, double deadline) {
    const auto start = Clock::now();
    task.waiting(true);
    while (!task.done()) {
        const double waited = seconds_since(start);
        registry().advance();
        if (task.done())
            break;
        if (deadline > 0 && waited > deadline)
            end_by_deadline(task, waited);
        rest(waited);
    }
    task.waiting(false);
}

/// Waits for the end of the task; throws what ended it, or `TimeoutError` at the deadline: that of this wait, else of
/// the scope, else of the communicator.
inline void wait(Task& task, std::optional<double> seconds = {}) {
    if (!task.done())
        advance_until_done(task, seconds.value_or(scoped_deadline.value_or(task.state().deadline)));
    registry().drop_finished();
    if (task.failure())
        std::rethrow_exception(task.failure());
}

/// Starts an operation and has the registry keep it unless it is done at once.
template <class Kind>
std::shared_ptr<Kind> start(std::shared_ptr<Kind> task, const std::shared_ptr<CommunicatorState>& state,
                            bool collective, const Operation& operation) {
    task->keep(state);
    task->start(*state, collective, operation);
    if (!task->done() || !task->revoked())
        registry().add(task);
    return task;
}

/// Runs an operation to its end.
///
/// Its task has one owner: to count several, the core would first have to finish all that it has just written for its
/// peers. A barrier of two processes takes 0.34 us instead of 0.38 so.
inline void run(const std::shared_ptr<CommunicatorState>& state, bool collective, const Operation& operation) {
    class Blocking : public Task {
      public:
        explicit Blocking(const std::shared_ptr<CommunicatorState>& owner) : owner_(owner) {}
        Blocking(const Blocking&) = delete;
        Blocking& operator=(const Blocking&) = delete;
        ~Blocking() override {
            if (!revoked()) { // the transport may still use what it holds
                keep(owner_);
                keep_for_ever(std::make_shared<Task>(std::move(*this)));
            }
        }

      private:
        const std::shared_ptr<CommunicatorState>& owner_;
    };
    Blocking task(state);
    task.start(*state, collective, operation);
    if (!task.done())
        registry().add(std::shared_ptr<Task>(std::shared_ptr<Task>(), &task));
    wait(task);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
