#pragma once

#include <reigen/core/buffer.hpp>

#include <cstddef>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Scratch memory that a kernel keeps for the life of its thread: grown by the first call that needs more, then reused,
/// so that a training loop allocates none. Each kernel has its own, named by its tag.
template <class Kernel>
class Workspace {
  public:
    /// Elements laid one array after the other; every array starts on a cache line.
    template <class T>
    static constexpr Index bytes(Index elements) {
        constexpr Index line = Buffer<std::byte>::alignment;
        return (elements * Index(sizeof(T)) + line - 1) / line * line;
    }

    /// The calling thread's scratch memory, at least this large. What it held is lost where it grows.
    static std::byte* reserve(Index bytes) {
        thread_local Buffer<std::byte> memory;
        if (memory.size() < bytes) {
            const MemoryScope scope(MemoryUse::workspace);
            memory = Buffer<std::byte>();
            memory = Buffer<std::byte>(bytes, Axes::none, Readers::none);
        }
        return memory.data();
    }
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
