#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/core/error.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

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

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
