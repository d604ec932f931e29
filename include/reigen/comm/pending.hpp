#pragma once

#include <reigen/comm/registry.hpp>
#include <reigen/core/buffer.hpp>

#include <memory>
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
    ///
    /// Throws  TimeoutError at the communicator's deadline; PeerError, CommunicationError where the operation failed.
    Buffer<T> wait() {
        const auto task = std::exchange(task_, nullptr);
        require(task != nullptr, "Pending: wait() is called once, on a started operation");
        detail::wait(*task);
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
