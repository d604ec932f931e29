#pragma once

#include <reigen/core/types.hpp>

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What a block of memory is for.
enum class MemoryUse : std::uint8_t { weights, gradients, optimizer, activations, keys_values, messages, workspace };

inline const char* to_string(MemoryUse use) {
    constexpr const char* names[] = {"weights",         "gradients", "optimizer state", "activations",
                                     "keys and values", "messages",  "workspace"};
    return names[int(use)];
}

/// One line of an account: a use, and the axes over which the objects in it are divided.
struct MemoryEntry {
    MemoryUse use = MemoryUse::activations;
    Axes split = Axes::none;
    auto operator<=>(const MemoryEntry&) const = default;
};

/// Bytes held now, and the most that were held at once.
struct MemoryBytes {
    Index current = 0;
    Index peak = 0;

    void add(Index bytes) {
        current += bytes;
        peak = std::max(peak, current);
    }
};

/// What one rank's `Buffer`s hold, by use. Buffers may be freed by any thread.
class MemoryAccount {
  public:
    void enter(MemoryEntry entry, Index bytes) {
        const std::lock_guard lock(mutex_);
        entries_[entry].add(bytes);
        by_use_[entry.use].add(bytes);
        total_.add(bytes);
        ++allocations_;
    }

    void leave(MemoryEntry entry, Index bytes) {
        const std::lock_guard lock(mutex_);
        entries_[entry].add(-bytes);
        by_use_[entry.use].add(-bytes);
        total_.add(-bytes);
    }

    std::map<MemoryEntry, MemoryBytes> entries() const {
        const std::lock_guard lock(mutex_);
        return entries_;
    }

    MemoryBytes of(MemoryUse use) const {
        const std::lock_guard lock(mutex_);
        const auto found = by_use_.find(use);
        return found == by_use_.end() ? MemoryBytes{} : found->second;
    }

    MemoryBytes total() const {
        const std::lock_guard lock(mutex_);
        return total_;
    }

    /// Blocks allocated since the start, to show that a loop allocates none.
    Index allocations() const {
        const std::lock_guard lock(mutex_);
        return allocations_;
    }

    /// Starts the peaks anew from what is held now.
    void reset_peaks() {
        const std::lock_guard lock(mutex_);
        for (auto& [entry, bytes] : entries_)
            bytes.peak = bytes.current;
        for (auto& [use, bytes] : by_use_)
            bytes.peak = bytes.current;
        total_.peak = total_.current;
    }

    /// Fills every new buffer with this byte, so that reading before writing shows (0xff makes NaN).
    void fill_new_buffers(std::optional<unsigned char> byte) { fill_byte_ = byte; }
    std::optional<unsigned char> fill_byte() const { return fill_byte_; }

  private:
    mutable std::mutex mutex_;
    std::map<MemoryEntry, MemoryBytes> entries_;
    std::map<MemoryUse, MemoryBytes> by_use_;
    MemoryBytes total_;
    Index allocations_ = 0;
    std::optional<unsigned char> fill_byte_;
};

namespace detail {
inline thread_local std::shared_ptr<MemoryAccount> thread_memory_account;
inline thread_local MemoryUse thread_memory_use = MemoryUse::activations;
} // namespace detail

/// The account of the calling rank: one a thread, made on first use.
inline const std::shared_ptr<MemoryAccount>& memory_account() {
    if (!detail::thread_memory_account)
        detail::thread_memory_account = std::make_shared<MemoryAccount>();
    return detail::thread_memory_account;
}

inline MemoryUse current_memory_use() {
    return detail::thread_memory_use;
}

/// While it lives, buffers made by this thread are entered under its use.
class MemoryScope {
  public:
    explicit MemoryScope(MemoryUse use) : before_(detail::thread_memory_use) { detail::thread_memory_use = use; }
    ~MemoryScope() { detail::thread_memory_use = before_; }
    MemoryScope(const MemoryScope&) = delete;
    MemoryScope& operator=(const MemoryScope&) = delete;

  private:
    MemoryUse before_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
