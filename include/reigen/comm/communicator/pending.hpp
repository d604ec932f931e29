#pragma once

#include <reigen/comm/communicator/run.hpp>
#include <reigen/core/buffer.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

class Communicator;

/// A started operation and the buffers it works on, which come back from `wait`. Moves, does not copy.
///
/// It moves on whenever this rank waits for anything or calls `poll()`. One destroyed before it is done is parked:
/// it goes on, and its buffers live until it is over.
template <class T>
class Pending {
  public:
    Pending() = default;

    bool valid() const { return task_ != nullptr; }

    /// Whether `wait` would return, or throw, at once. Moves what this rank has in flight; waits for nothing.
    bool done() {
        detail::registry().advance();
        return task().done();
    }

    /// Waits for the end and gives the result: what was received or reduced; of a send, what was sent. Once.
    /// `seconds`: the deadline of this wait, 0 = none; unless given, that of the scope (`Deadline`) or the communicator.
    ///
    /// Throws  TimeoutError at the deadline, which ends the operation; PeerError, CommunicationError where it failed
    Buffer<T> wait(std::optional<double> seconds = {}) {
        require(!seconds || *seconds >= 0, "Pending: wait for ", seconds.value_or(0), " seconds");
        const auto task = std::exchange(task_, nullptr);
        require(task != nullptr, "Pending: wait() is called once, on a started operation");
        detail::wait(*task, seconds);
        return std::move(task->result);
    }

  private:
    friend class Communicator;

    struct Holder : detail::Task {
        Holder(Buffer<T> result_, Buffer<T> source_) : result(std::move(result_)), source(std::move(source_)) {}
        Buffer<T> result;
        Buffer<T> source;
    };

    explicit Pending(std::shared_ptr<Holder> task) : task_(std::move(task)) {}

    Holder& task() const {
        require(task_ != nullptr, "Pending: empty, or already waited for");
        return *task_;
    }

    std::shared_ptr<Holder> task_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
