#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/transpose_packets.hpp>

#include <algorithm>
#include <cstring>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

#if defined(REIGEN_AMX)
/// to[i * row + step] = pair `step` of column i: 16 steps of 16 columns of a factor whose rows are contiguous.
inline void transpose_to_tile(Strided<const bfloat16> from, BFloat16Pair* to, Index row) {
    constexpr int L = lanes<float>;
    Packet<float> pairs[L];
    unrolled<L>([&](auto step) REIGEN_INLINE_LAMBDA {
        const PairPacket bits = load_step<BFloat16Pair>(from, step, 0);
        std::memcpy(&pairs[step], &bits, sizeof bits);
    });
    transpose_packets<float>(pairs);
    unrolled<L>([&](auto i) REIGEN_INLINE_LAMBDA { store_bits<BFloat16Pair>(to + i * row, pairs[i]); });
}
#endif

/// Whole panels, from rows that are contiguous in memory: copied a few rows at a time for all panels, so that reading
/// follows the rows. Panel by panel it would touch another page with every line, and products of 1024^3 to 2048^3 and
/// 512x4096x1024 take 1 to 2.5% longer.
template <class M, class From>
void pack_panels_of_rows(Strided<const From> from, M* to, Index panel) {
    constexpr Index steps_at_once = 16, L = lanes<SumOf<M>>;
    const Index steps = steps_in<M>(from.rows);
    for (Index first = 0; first < steps; first += steps_at_once) {
        const Index end = std::min(first + steps_at_once, steps);
        M* out = to;
        for (Index column = 0; column < from.cols; column += L, out += panel)
            for (Index step = first; step < end; ++step)
                store_multiplicands<M>(out + step * L, load_step<M>(from, step, column));
    }
}

/// One panel of at most a packet's columns with any strides, from step `first` on; missing columns become 0.
template <class M, class From>
void pack_any_panel(Strided<const From> from, Index first, M* to) {
    constexpr Index L = lanes<SumOf<M>>;
    for (Index step = first; step < steps_in<M>(from.rows); ++step)
        for (Index j = 0; j < L; ++j)
            to[step * L + j] = j < from.cols ? multiplicand<M>(from, step, j) : M{};
}

/// One panel, from columns that are contiguous in memory: transposed a packet of steps at a time.
template <class M, class From>
void pack_panel_of_columns(Strided<const From> from, M* to) {
    constexpr int L = lanes<SumOf<M>>;
    const Index whole = from.rows / (L * k_in<M>)*L;
    for (Index step = 0; step < whole; step += L) {
        Packet<SumOf<M>> block[L];
        unrolled<L>([&](auto j) REIGEN_INLINE_LAMBDA {
            block[j] = load_along_k<M>(from.data + step * k_in<M> + j * from.col_stride);
        });
        transpose_packets<SumOf<M>>(block);
        unrolled<L>([&](auto i) REIGEN_INLINE_LAMBDA { store_bits<M>(to + (step + i) * L, block[i]); });
    }
    pack_any_panel<M>(from, whole, to);
}

/// Right factor [k, n] as panels [n / lanes][steps along k][lanes] that start `panel` apart, padded with zeros.
///
/// Cost        reads k n, writes k n rounded up to whole packets
template <class M, class From>
void pack_right(Strided<const From> from, M* to, Index panel) {
    constexpr Index L = lanes<SumOf<M>>;
    Index column = 0;
    if (from.col_stride == 1) {
        column = from.cols / L * L;
        pack_panels_of_rows<M>(from.block(0, 0, from.rows, column), to, panel);
    }
    for (; column < from.cols; column += L) {
        const Strided<const From> columns = from.block(0, column, from.rows, std::min<Index>(L, from.cols - column));
        M* const out = to + column / L * panel;
        if (columns.cols == L && from.row_stride == 1)
            pack_panel_of_columns<M>(columns, out);
        else
            pack_any_panel<M>(columns, 0, out);
    }
}

/// The same as it is stored between products.
template <class M, class From>
void pack_right_to_keep(Strided<const From> from, M* to) {
    constexpr Index L = lanes<SumOf<M>>;
    if constexpr (std::is_same_v<M, Multiplicand<From>>)
        pack_right<M>(from, to, L * steps_in<M>(from.rows));
    else
        for (Index column = 0; column < from.cols; column += L)
            pack_any_panel<M>(from.block(0, column, from.rows, std::min(L, from.cols - column)), 0,
                              to + column * from.rows);
}

/// A left factor laid out for tiles: rows as they are, or one interleaved panel a tile.
template <class M>
struct LeftBlock {
    const M* data;
    Index row;
    Index step;
    Index panel_depth = 0; // of the interleaved panels; 0 where rows lie one after the other

    /// What a micro-kernel of this height reads for the tile that starts at row i.
    LeftPanel<M> tile(Index i, Index height) const {
        if (panel_depth == 0)
            return {data + i * row, row, step};
        return {data + i * panel_depth, 1, height};
    }
};

/// Left factor [m, k] as rows of contiguous steps, `row` apart.
template <class M, class From>
LeftBlock<M> pack_left_rows(Strided<const From> from, M* to, Index row) {
    for (Index i = 0; i < from.rows; ++i)
        if (from.col_stride == 1)
            pack_steps<M>(from.row(i), to + i * row, from.cols);
        else
            for (Index step = 0; step < steps_in<M>(from.cols); ++step)
                to[i * row + step] = multiplicand<M>(from.transpose(), step, i);
    return {to, row, 1};
}

/// Steps [first, end) of a tile's rows, each a few contiguous elements; full tiles know how many while compiling.
template <class M, Index Height, class From>
void pack_left_tile(Strided<const From> tile, Index first, Index end, M* to) {
    const Index height = Height > 0 ? Height : tile.rows;
    const Strided<const From> columns = {tile.data, tile.cols, tile.rows, tile.col_stride, 1};
    for (Index step = first; step < end; ++step)
        for (Index i = 0; i < height; ++i)
            to[step * height + i] = multiplicand<M>(columns, step, i);
}

/// Left factor [m, k] with contiguous columns as panels [tile][steps along k][height of the tile], so that a tile reads
/// whole cache lines. A few columns at a time for all tiles: columns a power of two apart fall on one set of the cache.
template <class M, class From>
LeftBlock<M> pack_left_columns(Strided<const From> from, M* to) {
    constexpr Index steps_at_once = 16;
    const Index steps = steps_in<M>(from.cols);
    for (Index first = 0; first < steps; first += steps_at_once) {
        const Index end = std::min(first + steps_at_once, steps);
        for (Index i = 0, height = 0; i < from.rows; i += height) {
            height = TileShape::next_height(from.rows - i);
            const Strided<const From> tile = from.block(i, 0, height, from.cols);
            if (height == TileShape::height)
                pack_left_tile<M, TileShape::height>(tile, first, end, to + i * steps);
            else
                pack_left_tile<M, 0>(tile, first, end, to + i * steps);
        }
    }
    return {to, 0, 0, steps};
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
