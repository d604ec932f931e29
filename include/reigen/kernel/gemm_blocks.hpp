#pragma once

#include <reigen/core/poll.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/pack.hpp>
#include <reigen/kernel/prefetch.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/workspace.hpp>

#include <algorithm>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Elements of k that one chain of multiply-adds covers: sums over k = [0, block), [block, 2 block), ... are taken from
/// zero each and added in order. A product cut into whole k-blocks is therefore summed as the uncut one.
///
/// At 384 float (256 double) a tile of A is 12 KB (16 KB) of the first-level cache, and C is read and written once in
/// 4600 cycles a tile.
template <class T>
inline constexpr Index gemm_k_block = sizeof(Accumulator<T>) == 8 ? 256 : 384;

namespace detail {

/// How much of each factor is worked on at a time, in elements of the type multiplied in.
template <class T>
struct GemmBlocking {
    static constexpr Index depth = gemm_k_block<T>;
    /// Columns of the right factor packed at once, in whole tiles: 0.59 MB, which stay in a second-level cache of 1 MB
    /// beside what streams past them.
    static constexpr Index tile_columns = TileShape::width * lanes<T>;
    static constexpr Index columns = 384 * 384 * 4 / (depth * Index(sizeof(T))) / tile_columns * tile_columns;
    /// Rows over which one packed right block is reused; a block of C of so many rows stays in the third-level cache.
    static constexpr Index rows = 1024 / TileShape::height * TileShape::height;
    /// Rows of the left factor packed at once.
    static constexpr Index left_rows = 64 / TileShape::height * TileShape::height;
    /// Up to here the right factor is read where it lies, if its rows are contiguous. Against packing it, in turns in one
    /// process: at 16, 32 and 64 rows 1.45, 1.29 and 1.14 times as fast where it is 512 x 512; where it is 1024 x 4096,
    /// 1.8 times at 1 row, 1.15 to 1.35 at 16, 1.01 to 1.11 at 32, no difference seen from 48 on.
    static constexpr Index few_rows = 64;
    /// Between two rows of a packed left factor: not a power of two, so that they do not share a cache set.
    static constexpr Index left_row_stride = depth + cache_line / Index(sizeof(T));
    /// A left factor above this many bytes is fetched ahead. In turns with not doing so in one process: 3% faster at
    /// 2048^3, and at 1024^3 where it is packed from its columns; 2% slower at 512^3; no difference seen between.
    static constexpr Index near_bytes = Index(1) << 20;
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

/// The left factor of one k-block, a group of rows at a time: read in place, or packed and widened.
template <class T, class From>
LeftBlock<T> left_block(Strided<const From> a, T* scratch) {
    if constexpr (std::is_same_v<T, From>)
        if (a.col_stride == 1)
            return {a.data, a.row_stride, 1};
    if (a.row_stride == 1)
        return pack_left_columns<T>(a, scratch);
    return pack_left_rows<T>(a, scratch, GemmBlocking<T>::left_row_stride);
}

/// C = alpha A B + beta C with C in the type of the sums, for a block of C that the scratch memory has room for.
template <class T, class From>
class BlockProduct {
    using Blocking = GemmBlocking<T>;
    using Factor = Strided<const From>;

  public:
    BlockProduct(T alpha, T* right_scratch, T* left_scratch)
        : alpha_(alpha), right_scratch_(right_scratch), left_scratch_(left_scratch) {}

    /// k-block after k-block in ascending order.
    void add(Factor a, Factor b, T beta, Strided<T> c) {
        fetch_ahead_ = a.size() * Index(sizeof(From)) > Blocking::near_bytes;
        for (Index k = 0; k < a.cols; k += Blocking::depth) {
            const Index depth = std::min(Blocking::depth, a.cols - k);
            const Index next_depth = std::min(Blocking::depth, a.cols - k - depth);
            const Index next_rows = std::min(Blocking::left_rows, a.rows);
            add_k_block(a.block(0, k, a.rows, depth), a.block(0, k + depth, next_rows, next_depth),
                        b.block(k, 0, depth, b.cols), k == 0 ? beta : T(1), c);
        }
    }

  private:
    /// One k-block; `next` is what of the left factor is needed after it. Where rows are few, packing the right factor
    /// would cost more than it gives: its whole packets are read in place and only the last columns are packed.
    void add_k_block(Factor a, Factor next, Factor b, T beta, Strided<T> c) {
        if constexpr (std::is_same_v<T, From>)
            if (b.col_stride == 1 && c.rows <= Blocking::few_rows && c.cols >= lanes<T>) {
                const Index whole = c.cols / lanes<T> * lanes<T>;
                add_rows(a, {}, {b.data, lanes<T>, b.row_stride}, beta, c.block(0, 0, c.rows, whole));
                b = b.block(0, whole, b.rows, b.cols - whole);
                c = c.block(0, whole, c.rows, c.cols - whole);
            }
        if (c.cols > 0)
            add_rows(a, next, pack_right<T>(b, right_scratch_), beta, c);
    }

    /// Group of rows after group of rows, the next one on its way while one is multiplied.
    void add_rows(Factor a, Factor after, RightPanel<T> right, T beta, Strided<T> c) {
        for (Index i = 0; i < c.rows; i += Blocking::left_rows) {
            const Index rows = std::min(Blocking::left_rows, c.rows - i);
            const Index next_rows = std::min(Blocking::left_rows, c.rows - i - rows);
            const Factor next = next_rows > 0 ? a.block(i + rows, 0, next_rows, a.cols) : after;
            const LeftBlock<T> left = left_block<T>(a.block(i, 0, rows, a.cols), left_scratch_);
            add_tiles(left, right, a.cols, beta, c.block(i, 0, rows, c.cols), next);
        }
    }

    void add_tiles(const LeftBlock<T>& left, const RightPanel<T>& right, Index depth, T beta, Strided<T> c,
                   Factor next) {
        const Index packets = packets_for<T>(c.cols);
        GradualPrefetch<From> prefetch_next(fetch_ahead_ ? next : Factor{}, TileShape::tiles(c.rows, packets));
        for (Index i = 0, height = 0; i < c.rows; i += height) {
            height = TileShape::next_height(c.rows - i);
            const LeftPanel<T> a = left.tile(i, height);
            for (Index p = 0, width = 0; p < packets; p += width) {
                width = TileShape::next_width(packets - p);
                const Index column = p * lanes<T>;
                const Index columns = std::min(width * lanes<T>, c.cols - column);
                prefetch_next.step();
                TileKernels<T>::kernel(height, width)(
                    {depth, a, right.from_packet(p), alpha_, beta, c.block(i, column, height, columns)});
            }
            clock_.advance(height * packets * lanes<T> * depth);
        }
    }

    T alpha_;
    T* right_scratch_;
    T* left_scratch_;
    bool fetch_ahead_ = false;
    PollClock clock_{Blocking::multiply_adds_between_polls};
};

/// The same where C is bfloat16: sums are kept in scratch memory and rounded once.
template <class From>
void add_and_round(BlockProduct<float, From>& product, Strided<const From> a, Strided<const From> b, float beta,
                   Strided<bfloat16> c, float* scratch) {
    const Strided<float> sums = {scratch, c.rows, c.cols, packets_for<float>(c.cols) * lanes<float>, 1};
    if (beta != 0)
        for (Index i = 0; i < c.rows; ++i)
            for (Index j = 0; j < c.cols; ++j)
                sums(i, j) = float(c(i, j));
    product.add(a, b, beta, sums);
    for (Index i = 0; i < c.rows; ++i)
        if (c.col_stride == 1)
            round_row(sums.row(i), c.row(i), c.cols);
        else
            for (Index j = 0; j < c.cols; ++j)
                c(i, j) = round_to_bfloat16(sums(i, j));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
