#pragma once

#include <reigen/core/types.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Elements first, ..., first + count - 1.
struct Chunk {
    Index first = 0;
    Index count = 0;
};

/// Ranges of elements cut into chunks of nearly equal size, none above a limit of bytes. Chunks begin at multiples of
/// 64 bytes.
class Chunks {
  public:
    /// `longest`: elements of the longest range; `limit`: bytes of a chunk, a multiple of 64.
    Chunks(Index longest, Index width, Index limit) {
        const Index line = 64 / width;
        steps_ = std::max<Index>(1, (longest * width + limit - 1) / limit);
        each_ = (longest + steps_ - 1) / steps_;
        each_ = (each_ + line - 1) / line * line;
    }

    /// At least one.
    Index steps() const { return steps_; }

    /// Elements of the longest chunk.
    Index longest() const { return each_; }

    /// The chunk of this step of a range of `count` elements; empty behind its end.
    Chunk of(Index count, Index step) const {
        const Index first = std::min(count, step * each_);
        return {first, std::min(each_, count - first)};
    }

  private:
    Index steps_;
    Index each_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
