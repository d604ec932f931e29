#pragma once

#include <reigen/core/poll.hpp>
#include <reigen/kernel/pack.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/workspace.hpp>

#include <algorithm>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Elements of k that one chain of multiply-adds covers: sums over k = [0, block), [block, 2 block), ... are taken
/// from zero each and added in order. A product cut into whole k-blocks is therefore summed as the uncut one.
template <class T>
inline constexpr Index gemm_k_block = sizeof(Accumulator<T>) == 8 ? 256 : 384;

namespace detail {

/// How much of each factor is worked on at a time, in elements of the type multiplied in.
template <class T>
struct GemmBlocking {
    static constexpr Index depth = gemm_k_block<T>;
    /// Columns of the right factor that stay in the second-level cache: 0.6 MB of them.
    static constexpr Index columns = 8 * TileShape::width * lanes<T>;
    /// Rows over which one packed right block is reused; C of rows x columns stays near.
    static constexpr Index rows = 128 * TileShape::height;
    /// Rows of the left factor packed at once.
    static constexpr Index left_rows = 8 * TileShape::height;
    /// Up to here the right factor is read where it lies, if its rows are contiguous.
    static constexpr Index few_rows = 2 * TileShape::height;
    /// Between two rows of a packed left factor: not a power of two, so that they do not share a cache set.
    static constexpr Index left_row_stride = depth + 64 / Index(sizeof(T));
    /// 80 us at the peak of the machine measured here.
    static constexpr Index multiply_adds_between_polls = Index(lanes<T>) << 19;

    /// The size of equal parts, in whole units, that are at most `largest`.
    static constexpr Index even(Index total, Index largest, Index unit) {
        const Index parts = (total + largest - 1) / largest;
        const Index units = (total + unit - 1) / unit;
        return (units + parts - 1) / parts * unit;
    }
};

/// Lets messages move every so many multiply-adds.
class PollClock {
  public:
    explicit PollClock(Index interval) : interval_(interval) {}
    void advance(Index work) {
        done_ += work;
        if (done_ < interval_)
            return;
        done_ = 0;
        poll();
    }

  private:
    Index interval_;
    Index done_ = 0;
};

/// Scratch memory of one product.
template <class T, class Out>
struct GemmScratch {
    using Blocking = GemmBlocking<T>;
    using Memory = Workspace<struct GemmTag>;

    T* right;
    T* left;
    T* sums;

    GemmScratch(Index rows, Index columns, Index depth) {
        const Index wide = packets_for<T>(std::min(columns, Blocking::columns)) * lanes<T>;
        const Index high = std::min(rows, Blocking::left_rows);
        const Index right_bytes = Memory::bytes<T>(std::min(depth, Blocking::depth) * wide);
        const Index left_bytes = Memory::bytes<T>(high * Blocking::left_row_stride);
        const Index sum_bytes = std::is_same_v<T, Out> ? 0 : Memory::bytes<T>(std::min(rows, Blocking::rows) * wide);
        std::byte* const memory = Memory::reserve(right_bytes + left_bytes + sum_bytes);
        right = reinterpret_cast<T*>(memory);
        left = reinterpret_cast<T*>(memory + right_bytes);
        sums = reinterpret_cast<T*>(memory + right_bytes + left_bytes);
    }
};

/// C += or = on all tiles of one k-block: left [m, k] times right [k, n].
template <class T>
void update_tiles(const LeftBlock<T>& left, const RightPanel<T>& right, Index depth, T alpha, T beta, Strided<T> c,
                  PollClock& clock) {
    const Index packets = packets_for<T>(c.cols);
    for (Index i = 0, height = 0; i < c.rows; i += height) {
        height = TileShape::next_height(c.rows - i);
        const LeftPanel<T> a = left.tile(i, height);
        for (Index p = 0, width = 0; p < packets; p += width) {
            width = TileShape::next_width(packets - p);
            const Index column = p * lanes<T>;
            const Index columns = std::min(width * lanes<T>, c.cols - column);
            TileKernels<T>::kernel(height, width)(
                {depth, a, right.from_packet(p), alpha, beta, c.block(i, column, height, columns)});
        }
        clock.advance(height * packets * lanes<T> * depth);
    }
}

/// The left factor of one k-block, a group of rows at a time: read in place, or packed and widened.
template <class T, class From>
LeftBlock<T> left_block(Strided<const From> a, T* scratch) {
    if constexpr (std::is_same_v<T, From>)
        if (a.col_stride == 1)
            return {a.data, a.row_stride, 1};
    if (a.row_stride == 1)
        return pack_left_columns<T>(a, scratch, TileShape::next_height);
    return pack_left_rows<T>(a, scratch, GemmBlocking<T>::left_row_stride);
}

template <class T, class From>
void multiply_by_right(Strided<const From> a, const RightPanel<T>& right, T alpha, T beta, Strided<T> c, T* scratch,
                       PollClock& clock) {
    const Index group = GemmBlocking<T>::left_rows;
    for (Index i = 0; i < c.rows; i += group) {
        const Index rows = std::min(group, c.rows - i);
        update_tiles(left_block<T>(a.block(i, 0, rows, a.cols), scratch), right, a.cols, alpha, beta,
                     c.block(i, 0, rows, c.cols), clock);
    }
}

/// C = alpha A B + beta C over one k-block. Where rows are few, packing the right factor would cost more than it
/// gives: its whole packets are read in place and only the last columns are packed.
template <class T, class From>
void multiply_k_block(T alpha, Strided<const From> a, Strided<const From> b, T beta, Strided<T> c, T* right, T* left,
                      PollClock& clock) {
    if constexpr (std::is_same_v<T, From>)
        if (b.col_stride == 1 && c.rows <= GemmBlocking<T>::few_rows) {
            const Index whole = c.cols / lanes<T> * lanes<T>;
            multiply_by_right<T>(a, RightPanel<T>{b.data, lanes<T>, b.row_stride}, alpha, beta,
                                 c.block(0, 0, c.rows, whole), left, clock);
            b = b.block(0, whole, b.rows, b.cols - whole);
            c = c.block(0, whole, c.rows, c.cols - whole);
        }
    if (c.cols > 0)
        multiply_by_right<T>(a, pack_right<T>(b, right), alpha, beta, c, left, clock);
}

/// C = alpha A B + beta C with C in the type of the sums, k-block after k-block in ascending order.
template <class T, class From>
void multiply_k_blocks(T alpha, Strided<const From> a, Strided<const From> b, T beta, Strided<T> c, T* right, T* left,
                       PollClock& clock) {
    for (Index k = 0; k < a.cols; k += GemmBlocking<T>::depth) {
        const Index depth = std::min(GemmBlocking<T>::depth, a.cols - k);
        multiply_k_block<T>(alpha, a.block(0, k, a.rows, depth), b.block(k, 0, depth, b.cols), k == 0 ? beta : T(1), c,
                            right, left, clock);
    }
}

/// The same where C is narrower than the sums: they are kept in scratch memory and rounded once.
template <class T, class From, class Out>
void multiply_and_round(T alpha, Strided<const From> a, Strided<const From> b, T beta, Strided<Out> c,
                        const GemmScratch<T, Out>& scratch, PollClock& clock) {
    const Strided<T> sums = {scratch.sums, c.rows, c.cols, packets_for<T>(c.cols) * lanes<T>, 1};
    if (beta != T(0))
        for (Index i = 0; i < c.rows; ++i)
            for (Index j = 0; j < c.cols; ++j)
                sums(i, j) = T(c(i, j));
    multiply_k_blocks<T>(alpha, a, b, beta, sums, scratch.right, scratch.left, clock);
    for (Index i = 0; i < c.rows; ++i)
        for (Index j = 0; j < c.cols; ++j)
            c(i, j) = Out(sums(i, j));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
