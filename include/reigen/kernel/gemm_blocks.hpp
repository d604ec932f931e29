#pragma once

#include <reigen/kernel/amx/gemm.hpp>
#include <reigen/kernel/bfloat16.hpp>

#include <reigen/kernel/gemm_few_rows.hpp>
#include <reigen/kernel/gemm_k_block.hpp>
#include <reigen/kernel/gemm_streamed.hpp>
#include <reigen/kernel/pack.hpp>
#include <reigen/kernel/packed_weight.hpp>
#include <reigen/kernel/poll_clock.hpp>
#include <reigen/kernel/prefetch.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/workspace.hpp>

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// How much of each factor is worked on at a time, in multiplicands.
///
/// A strip of the right factor, one tile wide and `depth` deep, and `left_rows` rows of the left one are used together:
/// 0.2 and 0.26 MB of a second-level cache. The core brings them there by itself: asking for them ahead makes products
/// of 1024^3 and 2048^3 take 2 to 4% (the strip) and 1% (the rows) longer on Zen 4, where figures here are from unless
/// they say otherwise.
template <class M>
struct GemmBlocking {
    /// Along k, at most: C is read and written once in so many steps. With 384 of float instead of 1024, products of
    /// 1024^3 and 2048^3 take 1 to 3% longer; but on an Emerald Rapids, which has tiles, those of 1024 each way and more
    /// take 1 to 5% less with 512, packed or not.
    static constexpr Index depth = (in_tiles<BFloat16Pair> ? 2048 : 4096) / Index(sizeof(M));
    static constexpr Index k_block = gemm_k_block<SumOf<M>>; // in multiplicands
    static_assert(depth % k_block == 0);
    /// Columns of the right factor packed at once, at most: 2.9 MB in the third-level cache. The left factor is read, and
    /// where its columns are contiguous packed, once for each so many. Of 480 to 2016 these and fewer are the fastest
    /// where it is read, by 2% at 1024^3; more where it is packed, by less than 1%.
    static constexpr Index columns = 720;
    static constexpr Index tile_columns = TileShape::width * lanes<SumOf<M>>;
    static_assert(columns % tile_columns == 0);
    /// Rows of the left factor used at a time. 96 and 128 are no faster.
    static constexpr Index left_rows = 64 / TileShape::height * TileShape::height;
    /// Between two rows of a packed left factor: not a power of two, so that they do not share a cache set.
    static constexpr Index left_row_stride = depth + cache_line / Index(sizeof(M));
    /// Rows of C whose sums are kept until they are rounded.
    static constexpr Index rounded_rows = 1024 / TileShape::height * TileShape::height;
    /// A right factor within this many bytes of memory is read where it lies, if that is in whole packets: 1.1 times as
    /// fast as packing it at 32x128x128, 1.025 at 128^3, 1.02 at 256^3, 0.985 at 1024x64x1024.
    static constexpr Index small_bytes = Index(1) << 18;

    /// The size of equal parts, in whole units, that are at most `largest`, which is whole units.
    static constexpr Index even(Index total, Index largest, Index unit) {
        const Index parts = (total + largest - 1) / largest;
        const Index units = (total + unit - 1) / unit;
        return (units + parts - 1) / parts * unit;
    }
};

/// Whether rows are so few that the right factor is read once, in the order in which it lies.
template <class From>
bool rows_are_few(Index rows, const Strided<const From>& right) {
    return rows <= FewRows<Accumulator<From>>::rows && right.col_stride == 1;
}
template <class From>
bool rows_are_few(Index rows, const PackedRight<From>&) {
    return rows <= StreamedTile::rows;
}
template <class From>
bool rows_are_few(Index, const PackedRightForManyRows<From>&) {
    return false;
}

/// Scratch memory of one product.
template <class M, class Out>
struct GemmScratch {
    using T = SumOf<M>;
    using Blocking = GemmBlocking<M>;
    using Memory = Workspace<struct GemmTag>;

    M* right;
    M* left;     // where rows are few and the right factor is packed, of all k
    T* few_sums; // where rows are few and it is not; in the place of `left`
    T* sums;

    GemmScratch(Index rows, Index columns, Index k, bool few_rows) {
        const Index wide = padded<T>(few_rows ? columns : std::min(columns, Blocking::columns));
        const Index high = std::min(rows, Blocking::left_rows);
        const Index steps = steps_in<M>(k);
        const Index right_bytes = few_rows ? 0 : Memory::bytes<M>(std::min(steps, Blocking::depth) * wide);
        const Index left_bytes =
            Memory::bytes<M>(few_rows ? std::max(rows * steps, FewRows<T>::room) : high * Blocking::left_row_stride);
        const Index sum_bytes =
            std::is_same_v<T, Out> ? 0 : Memory::bytes<T>(std::min(rows, Blocking::rounded_rows) * wide);
        std::byte* const memory = Memory::reserve(right_bytes + left_bytes + sum_bytes);
        right = reinterpret_cast<M*>(memory);
        left = reinterpret_cast<M*>(memory + right_bytes);
        few_sums = reinterpret_cast<T*>(left);
        sums = reinterpret_cast<T*>(memory + right_bytes + left_bytes);
    }
};

/// Whether rows of a left factor are rows of multiplicands as they lie.
template <class M, class From>
bool lies_ready(const Strided<const From>& a) {
    if constexpr (std::is_same_v<M, From>)
        return a.col_stride == 1;
    else if constexpr (std::is_same_v<M, BFloat16Pair>)
        return a.col_stride == 1 && a.row_stride % 2 == 0 && a.cols % 2 == 0;
    else
        return false;
}

/// The left factor of one part of k, a group of rows at a time: read in place, or packed and widened.
template <class M, class From>
LeftBlock<M> left_block(Strided<const From> a, M* scratch) {
    if (lies_ready<M>(a))
        return {reinterpret_cast<const M*>(a.data), a.row_stride / k_in<M>, 1};
    if (a.row_stride == 1)
        return pack_left_columns<M>(a, scratch);
    return pack_left_rows<M>(a, scratch, GemmBlocking<M>::left_row_stride);
}

/// C = alpha A B + beta C with C in the type of the sums, for a block of C that the scratch memory has room for.
template <class From, class Out>
class BlockProduct {
    using T = Accumulator<From>;
    using M = Multiplicand<From>;
    using Blocking = GemmBlocking<M>;
    using Factor = Strided<const From>;

  public:
    BlockProduct(T alpha, const GemmScratch<M, Out>& scratch) : alpha_(alpha), scratch_(scratch) {}

    template <class Right>
    void add(Factor a, Right b, T beta, Strided<T> c) {
        if constexpr (!std::is_same_v<Right, PackedRightForManyRows<From>>)
            if (rows_are_few(c.rows, b))
                return add_few_rows(a, b, beta, c);
        add_k_blocks(a, b, beta, c);
    }

  private:
    void add_few_rows(Factor a, Factor b, T beta, Strided<T> c) {
        multiply_few_rows(alpha_, a, b, beta, c, scratch_.few_sums, clock_);
    }
    void add_few_rows(Factor a, PackedRight<From> b, T beta, Strided<T> c) {
        multiply_streamed(alpha_, a, b, beta, c, scratch_.left, clock_);
    }

    /// Some k-blocks after the other in ascending order.
    template <class Right>
    void add_k_blocks(Factor a, Right b, T beta, Strided<T> c) {
        right_is_small_ = is_small(b);
        const Index deep = Blocking::even(a.cols, Blocking::depth * k_in<M>, Blocking::k_block * k_in<M>);
        for (Index k = 0; k < a.cols; k += deep) {
            const Index depth = std::min(deep, a.cols - k);
            const RightPanel<M> right = panels_of(b.block(k, 0, depth, b.cols));
            add_rows(a.block(0, k, a.rows, depth), right, k == 0 ? beta : T(1), c);
        }
    }

    static bool is_small(Factor b) { return b.rows * b.row_stride * Index(sizeof(From)) <= Blocking::small_bytes; }
    static bool is_small(PackedRight<From>) { return false; }

    RightPanel<M> panels_of(Factor b) {
        if constexpr (std::is_same_v<M, From>)
            if (right_is_small_ && b.col_stride == 1 && b.cols % lanes<T> == 0)
                return {b.data, lanes<T>, b.row_stride};
        const RightPanel<M> panels = {scratch_.right, lanes<T> * steps_in<M>(b.rows), lanes<T>};
        for (Index step = 0, k = 0; k < b.rows; step += Blocking::k_block, k = step * k_in<M>) {
            const Index depth = std::min(Blocking::k_block * k_in<M>, b.rows - k);
            pack_right<M>(b.block(k, 0, depth, b.cols), scratch_.right + step * panels.step, panels.packet);
            clock_.advance(PollClock<T>::fewest_rows * depth * b.cols);
        }
        return panels;
    }
    RightPanel<M> panels_of(PackedRight<From> b) {
        if constexpr (std::is_same_v<M, StoredMultiplicand<From>>) {
            return b.panels();
        } else {
            const Index panel = lanes<T> * b.rows;
            for (Index p = 0; p < packets_for<T>(b.cols); ++p) {
                widen_row<M>(b.panels().from_packet(p).data, scratch_.right + p * panel, panel);
                clock_.advance(PollClock<T>::fewest_rows * panel);
            }
            return {scratch_.right, panel, lanes<T>};
        }
    }

    /// One part of k, group of rows after group of rows.
    void add_rows(Factor a, RightPanel<M> right, T beta, Strided<T> c) {
        for (Index i = 0; i < c.rows; i += Blocking::left_rows) {
            const Index rows = std::min(Blocking::left_rows, c.rows - i);
            const LeftBlock<M> left = left_block<M>(a.block(i, 0, rows, a.cols), scratch_.left);
            add_tiles(left, right, steps_in<M>(a.cols), beta, c.block(i, 0, rows, c.cols));
        }
    }

    /// Strip of the right factor after strip, each with all rows of the left one.
    void add_tiles(const LeftBlock<M>& left, const RightPanel<M>& right, Index depth, T beta, Strided<T> c) {
        const Index packets = packets_for<T>(c.cols);
        for (Index p = 0, width = 0; p < packets; p += width) {
            width = TileShape::next_width(packets - p);
            const RightPanel<M> strip = right.from_packet(p);
            const Index column = p * lanes<T>;
            const Index columns = std::min(width * lanes<T>, c.cols - column);
            for (Index i = 0, height = 0; i < c.rows; i += height) {
                height = TileShape::next_height(c.rows - i);
                TileKernels<M>::kernel(height, width)(
                    {depth, left.tile(i, height), strip, alpha_, beta, c.block(i, column, height, columns)});
                clock_.advance(height * width * lanes<T> * depth * k_in<M>);
            }
        }
    }

    T alpha_;
    GemmScratch<M, Out> scratch_;
    bool right_is_small_ = false;
    PollClock<T> clock_;
};

/// The same where C is bfloat16: sums are kept in scratch memory and rounded once.
template <class From, class Right>
void add_and_round(BlockProduct<From, bfloat16>& product, Strided<const From> a, Right b, float beta,
                   Strided<bfloat16> c, float* scratch) {
    const Strided<float> sums = {scratch, c.rows, c.cols, padded<float>(c.cols), 1};
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

#if defined(REIGEN_AMX)
template <std::same_as<bfloat16> From, class Right, class Out>
void multiply_blocks(float alpha, Strided<const From> a, Right b, float beta, Strided<Out> c) {
    AmxProduct<Right, Out>(alpha, a, b, beta, c).compute();
}
#endif

/// The product with vectors along the rows of C, on one thread: block after block of C, each over all of k. The right
/// factor is a matrix or a packed one.
template <class From, class Right, class Out>
void multiply_blocks(Accumulator<From> alpha, Strided<const From> a, Right b, Accumulator<From> beta, Strided<Out> c) {
    using T = Accumulator<From>;
    using M = Multiplicand<From>;
    using Blocking = GemmBlocking<M>;
    const bool few_rows = rows_are_few(c.rows, b);
    const GemmScratch<M, Out> scratch(c.rows, c.cols, a.cols, few_rows);
    BlockProduct<From, Out> product(alpha, scratch);
    const Index wide = few_rows ? c.cols : Blocking::even(c.cols, Blocking::columns, TileShape::width * lanes<T>);
    const Index high =
        std::is_same_v<T, Out> ? c.rows : Blocking::even(c.rows, Blocking::rounded_rows, TileShape::height);
    for (Index j = 0; j < c.cols; j += wide)
        for (Index i = 0; i < c.rows; i += high) {
            const Index rows = std::min(high, c.rows - i);
            const Index columns = std::min(wide, c.cols - j);
            const Strided<const From> left = a.block(i, 0, rows, a.cols);
            const Right right = b.block(0, j, b.rows, columns);
            const Strided<Out> block = c.block(i, j, rows, columns);
            if constexpr (std::is_same_v<T, Out>)
                product.add(left, right, beta, block);
            else
                add_and_round<From>(product, left, right, beta, block, scratch.sums);
        }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
