#pragma once

#include <reigen/core/instruction_set.hpp>

#include <atomic>
#include <cstddef>
#include <span>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Who reads the memory of a Buffer: other ranks too, where they can, or this process alone.
enum class Readers { neighbours, none };

/// Where long `Buffer`s of this process lie instead of on the heap: how a transport gives them memory that it can send
/// from in place. Called by any thread.
class BufferSource {
  public:
    /// Bytes of a Buffer from which on a source is asked.
    static constexpr std::size_t least_bytes = 32768;

    BufferSource() = default;
    virtual ~BufferSource() = default;
    BufferSource(const BufferSource&) = delete;
    BufferSource& operator=(const BufferSource&) = delete;

    /// Memory aligned to 64 bytes, or null, where it is to lie on the heap.
    virtual void* take(std::size_t bytes) noexcept = 0;

    /// False where the memory is not of this source.
    virtual bool give_back(void* memory, std::size_t bytes) noexcept = 0;

    /// What lies between all that it has ever given, to see where in the machine that is.
    virtual std::span<const std::byte> given() const noexcept { return {}; }
};

namespace detail {
inline std::atomic<BufferSource*> buffer_source = nullptr;
} // namespace detail

/// Sets the source of the process, which lives as long as it: Buffers may outlive everything else. Null: the heap.
inline void set_buffer_source(BufferSource* source) noexcept {
    detail::buffer_source.store(source, std::memory_order_release);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
