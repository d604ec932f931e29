#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/core/buffer.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A block of every rank of a group, which all of them read where it lies, if their memory can be read so.
///
///     Shown<float> blocks(ranks, std::move(mine));
///     if (blocks.readable())
///         look_at(blocks.of(other));
///     blocks.close();
///
/// A block whose rank does not come to `close`, because something was thrown, is kept for ever: others may still read it.
template <class T>
class Shown {
  public:
    /// Collective.
    ///
    /// Cost  an all_gather of 16 bytes a rank, which `traffic` does not count; none where memory cannot be read so
    Shown(const Communicator& ranks, Buffer<T> mine) : ranks_(ranks), mine_(std::move(mine)) {
        blocks_ = ranks.show(std::as_bytes(std::as_const(mine_).span()));
    }

    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

    ~Shown() {
        if (readable())
            detail::keep_for_ever(std::make_shared<Buffer<T>>(std::move(mine_)));
    }

    /// Whether all blocks can be read; alike on all ranks.
    bool readable() const { return !blocks_.empty(); }

    const T* of(int rank) const { return reinterpret_cast<const T*>(blocks_[std::size_t(rank)]); }

    /// Returns when every rank has looked at what it wants of the others. Collective.
    void close() {
        if (!readable())
            return;
        ranks_.meet();
        blocks_.clear();
    }

  private:
    Communicator ranks_;
    Buffer<T> mine_;
    std::vector<const std::byte*> blocks_; // of each rank, while others may read this one's
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
