#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/packet.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

inline constexpr Index cache_line = 64; // bytes

/// Elements that fill whole cache lines.
template <class T>
constexpr Index padded_to_lines(Index elements) {
    constexpr Index line = cache_line / Index(sizeof(T));
    return (elements + line - 1) / line * line;
}

/// Asks for the cache line that holds an address to be in the second-level cache soon.
REIGEN_INLINE void prefetch(const void* address) {
    __builtin_prefetch(address, 0, 2);
}

/// Asks for it to be near, and this core's to write.
REIGEN_INLINE void prefetch_to_write(const void* address) {
    __builtin_prefetch(address, 1);
}

/// Brings a block of a matrix nearer, a few cache lines at a time, while something else is computed: processors follow
/// one row by themselves, but not from the end of a row to the next.
class GradualPrefetch {
  public:
    /// Done after so many steps. A block without contiguous rows or columns is left alone.
    template <class Scalar>
    GradualPrefetch(Strided<const Scalar> block, Index steps) {
        if (block.empty() || (block.row_stride != 1 && block.col_stride != 1))
            return;
        const Strided<const Scalar> rows = block.col_stride == 1 ? block : block.transpose();
        row_ = reinterpret_cast<const char*>(rows.data);
        row_bytes_ = rows.cols * Index(sizeof(Scalar));
        stride_bytes_ = rows.row_stride * Index(sizeof(Scalar));
        end_ = row_ + rows.rows * stride_bytes_;
        const Index lines = rows.rows * ((row_bytes_ + cache_line - 1) / cache_line);
        lines_a_step_ = (lines + steps - 1) / steps;
    }

    REIGEN_INLINE void step() {
        for (Index lines = lines_a_step_; lines > 0 && row_ != end_; --lines) {
            prefetch(row_ + at_);
            at_ += cache_line;
            if (at_ >= row_bytes_) {
                at_ = 0;
                row_ += stride_bytes_;
            }
        }
    }

  private:
    const char* row_ = nullptr;
    const char* end_ = nullptr; // behind the last row
    Index row_bytes_ = 0;
    Index stride_bytes_ = 0;
    Index at_ = 0;
    Index lines_a_step_ = 0;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
