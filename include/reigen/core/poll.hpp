#pragma once

#include <reigen/core/instruction_set.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What `poll()` calls on this thread: how long computations let messages move without knowing of them.
struct PollHook {
    void (*call)(void* context) noexcept = nullptr;
    void* context = nullptr;
};

namespace detail {
inline thread_local PollHook poll_hook;
} // namespace detail

/// Sets this thread's hook and returns the one it replaces. A rank's main thread has one, other threads none.
inline PollHook exchange_poll_hook(PollHook hook) noexcept {
    const PollHook before = detail::poll_hook;
    detail::poll_hook = hook;
    return before;
}

/// Lets whatever is in flight on this rank move on. Kernels call it between tiles; a null test when nothing is.
inline void poll() noexcept {
    if (detail::poll_hook.call != nullptr)
        detail::poll_hook.call(detail::poll_hook.context);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
