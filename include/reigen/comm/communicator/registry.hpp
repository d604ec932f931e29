#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/deadline.hpp>
#include <reigen/core/poll.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What the copies of one `Communicator` share.
struct CommunicatorState {
    std::shared_ptr<Backend> backend;
    double deadline = 300;       // seconds, 0 = none
    unsigned order = 0;          // collectives started so far
    std::string failure;         // why nothing more can be done here
    std::set<std::string> names; // of its handles: what operations refer to

    void fail(const std::string& why) {
        if (failure.empty())
            failure = why;
    }
};

inline std::string message_of(const std::exception_ptr& exception) {
    try {
        std::rethrow_exception(exception);
    } catch (const std::exception& error) {
        const std::string message = error.what();
        return message.empty() ? "an exception without a message" : message;
    } catch (...) {
        return "an exception of unknown type";
    }
}

/// One operation from its start to its end. A `Pending` adds its buffers.
class Task {
  public:
    Task() = default;
    Task(Task&&) = default;
    Task& operator=(Task&&) = default;
    virtual ~Task() = default;

    /// `state` lives as long as the task, which `keep` sees to.
    void start(CommunicatorState& state, bool collective, const Operation& operation) {
        state_ = &state;
        collective_ = collective;
        Backend& backend = *state_->backend;
        started_ = collective ? start_in_order(backend, operation) : backend.message(operation);
        advance();
    }

    void advance() noexcept {
        if (done_)
            return;
        try {
            done_ = started_->advance();
        } catch (...) {
            end(std::current_exception());
        }
    }

    /// Ends it before its time: takes back what is in flight, and gives the communicator up where that cannot be done
    /// or where its collectives have lost their order.
    ///
    /// A transport that cannot take back what it has begun gets a moment to finish it, as the caller of a blocking call
    /// may then free the memory.
    void end(std::exception_ptr why) noexcept {
        const auto start = Clock::now();
        revoked_ = started_->revoke();
        while (!revoked_ && seconds_since(start) < moment) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            revoked_ = started_->revoke();
        }
        end_as_it_is(std::move(why));
    }

    /// Ends a task that nobody waits for any more, and that has its own memory.
    void abandon() noexcept {
        if (done_)
            return;
        revoked_ = started_->revoke();
        end_as_it_is(std::make_exception_ptr(PeerError("the rank ended before " + started_->waits_for())));
    }

    void keep(std::shared_ptr<CommunicatorState> state) { kept_ = std::move(state); }

    bool done() const { return done_; }
    bool revoked() const { return revoked_; }
    const std::exception_ptr& failure() const { return failure_; }
    const CommunicatorState& state() const { return *state_; }
    std::string waits_for() const { return started_->waits_for(); }
    void waiting(bool begins) noexcept { started_->waiting(begins); }

  private:
    static constexpr double moment = 0.5; // seconds

    void end_as_it_is(std::exception_ptr why) noexcept {
        done_ = true;
        failure_ = std::move(why);
        if (collective_ || !revoked_)
            state_->fail(message_of(failure_));
    }

    /// A collective that this rank alone cannot start has used up its place in the common order.
    std::unique_ptr<Started> start_in_order(Backend& backend, const Operation& operation) {
        try {
            return backend.start_collective(operation);
        } catch (...) {
            state_->fail(message_of(std::current_exception()));
            throw;
        }
    }

    std::shared_ptr<CommunicatorState> kept_;
    CommunicatorState* state_ = nullptr;
    std::unique_ptr<Started> started_; // refers to the backend in the state, so it goes first
    std::exception_ptr failure_;
    bool collective_ = false;
    bool done_ = false;
    bool revoked_ = true;
};

/// Keeps for ever what could not be taken back: the transport, or another rank, may still use its memory.
inline void keep_for_ever(std::shared_ptr<void> owner) {
    static std::mutex& mutex = *new std::mutex;
    static auto& kept = *new std::vector<std::shared_ptr<void>>;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(owner));
}

/// All live operations of all communicators of this rank, in the order of their start; `poll()` moves them.
///
/// It shares ownership: an operation whose `Pending` is gone is parked here, buffers and all, until it is done. Only
/// those that block are their callers', who wait for them.
class Registry {
  public:
    Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;
    ~Registry() { close(); }

    void add(std::shared_ptr<Task> task) {
        if (tasks_.empty())
            before_ = exchange_poll_hook({[](void* self) noexcept { static_cast<Registry*>(self)->advance(); }, this});
        tasks_.push_back(std::move(task));
    }

    void advance() noexcept {
        if (advancing_ || tasks_.empty())
            return;
        advancing_ = true;
        for (const auto& task : tasks_)
            task->advance();
        advancing_ = false;
        drop_finished();
    }

    /// Operations in flight.
    std::size_t size() const { return tasks_.size(); }

    /// Takes back everything: the rank is leaving.
    void close() noexcept {
        for (const auto& task : tasks_)
            task->abandon();
        drop_finished();
    }

    void drop_finished() noexcept {
        if (tasks_.empty())
            return;
        std::erase_if(tasks_, [](std::shared_ptr<Task>& task) {
            const bool shared = task.use_count() > 0;
            if (shared && task->done() && !task->revoked())
                keep_for_ever(task);
            return task->done();
        });
        if (tasks_.empty())
            exchange_poll_hook(before_);
    }

  private:
    std::vector<std::shared_ptr<Task>> tasks_;
    PollHook before_;
    bool advancing_ = false;
};

inline Registry& registry() {
    thread_local Registry registry;
    return registry;
}

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
