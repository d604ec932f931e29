#pragma once

#include <reigen/comm/communicator/task.hpp>
#include <reigen/core/poll.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

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

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
