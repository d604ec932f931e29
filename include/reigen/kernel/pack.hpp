#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/transpose_packets.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Whole panels, from rows that are contiguous in memory: copied a few rows at a time for all panels, so that reading
/// follows the rows. Panel by panel it would touch another page with every line, and products of 1024^3 to 2048^3 and
/// 512x4096x1024 take 1 to 2.5% longer.
template <class T, class From>
void pack_panels_of_rows(Strided<const From> from, T* to) {
    constexpr Index rows_at_once = 16;
    const Index panel = lanes<T> * from.rows;
    for (Index first = 0; first < from.rows; first += rows_at_once) {
        const Index end = std::min(first + rows_at_once, from.rows);
        T* out = to;
        for (Index column = 0; column < from.cols; column += lanes<T>, out += panel)
            for (Index k = first; k < end; ++k)
                store<T>(out + k * lanes<T>, load<T>(from.data + k * from.row_stride + column));
    }
}

/// One panel, from columns that are contiguous in memory: transposed a packet of rows at a time.
template <class T, class From>
void pack_panel_of_columns(Strided<const From> from, T* to) {
    constexpr int L = lanes<T>;
    Index k = 0;
    for (; k + L <= from.rows; k += L) {
        Packet<T> block[L];
        unrolled<L>([&](auto j) REIGEN_INLINE_LAMBDA { block[j] = load<T>(from.data + k + j * from.col_stride); });
        transpose_packets<T>(block);
        unrolled<L>([&](auto i) REIGEN_INLINE_LAMBDA { store<T>(to + (k + i) * L, block[i]); });
    }
    for (; k < from.rows; ++k)
        store<T>(to + k * L, load_some<T>(from.data + k, from.col_stride, L));
}

/// One panel of at most lanes<T> columns with any strides; missing columns become 0.
template <class T, class From>
void pack_any_panel(Strided<const From> from, T* to) {
    for (Index k = 0; k < from.rows; ++k)
        store<T>(to + k * lanes<T>, load_some<T>(from.data + k * from.row_stride, from.col_stride, int(from.cols)));
}

/// Right factor [k, n] as panels [n / lanes][k][lanes], padded with zeros, in the type it is multiplied in.
///
/// Cost        reads k n, writes k n rounded up to whole packets
template <class T, class From>
RightPanel<T> pack_right(Strided<const From> from, T* to) {
    constexpr int L = lanes<T>;
    Index column = 0;
    if (from.col_stride == 1) {
        column = from.cols / L * L;
        pack_panels_of_rows<T>(from.block(0, 0, from.rows, column), to);
    }
    for (; column < from.cols; column += L) {
        const Strided<const From> panel = from.block(0, column, from.rows, std::min<Index>(L, from.cols - column));
        if (panel.cols == L && from.row_stride == 1)
            pack_panel_of_columns<T>(panel, to + column * from.rows);
        else
            pack_any_panel<T>(panel, to + column * from.rows);
    }
    return {to, L * from.rows, L};
}

/// The same panels in the type the factor is stored in.
template <class From>
void pack_right_as_stored(Strided<const From> from, From* to) {
    using T = Accumulator<From>;
    if constexpr (std::is_same_v<T, From>) {
        pack_right<T>(from, to);
    } else {
        for (Index column = 0; column < from.cols; column += lanes<T>)
            for (Index k = 0; k < from.rows; ++k)
                for (Index j = column; j < column + lanes<T>; ++j)
                    *to++ = j < from.cols ? from(k, j) : From(0);
    }
}

/// Panels of `packet` elements each, one after the other, in the type they are multiplied in.
template <class T, class From>
RightPanel<T> widen_panels(RightPanel<From> from, Index rows, Index packets, T* to) {
    for (Index p = 0; p < packets; ++p)
        widen_row<T>(from.data + p * from.packet, to + p * rows * lanes<T>, rows * lanes<T>);
    return {to, lanes<T> * rows, lanes<T>};
}

/// A left factor laid out for tiles: rows as they are, or one interleaved panel a tile.
template <class T>
struct LeftBlock {
    const T* data;
    Index row;
    Index step;
    Index panel_depth = 0; // of the interleaved panels; 0 where rows lie one after the other

    /// What a micro-kernel of this height reads for the tile that starts at row i.
    LeftPanel<T> tile(Index i, Index height) const {
        if (panel_depth == 0)
            return {data + i * row, row, step};
        return {data + i * panel_depth, 1, height};
    }
};

/// Left factor [m, k] as rows of k contiguous elements, `row` apart.
template <class T, class From>
LeftBlock<T> pack_left_rows(Strided<const From> from, T* to, Index row) {
    for (Index i = 0; i < from.rows; ++i) {
        T* const out = to + i * row;
        if (from.col_stride == 1)
            widen_row<T>(from.row(i), out, from.cols);
        else
            for (Index k = 0; k < from.cols; ++k)
                out[k] = T(from(i, k));
    }
    return {to, row, 1};
}

/// Columns [first, end) of a tile's rows, each a few contiguous elements; full tiles know how many while compiling.
template <class T, Index Height, class From>
void pack_left_tile(Strided<const From> tile, Index first, Index end, T* to) {
    const Index height = Height > 0 ? Height : tile.rows;
    for (Index k = first; k < end; ++k)
        for (Index i = 0; i < height; ++i)
            to[k * height + i] = T(tile.data[k * tile.col_stride + i]);
}

/// Left factor [m, k] with contiguous columns as panels [tile][k][height of the tile], so that a tile reads whole cache
/// lines. A few columns at a time for all tiles: columns a power of two apart fall on one set of the cache.
template <class T, class From>
LeftBlock<T> pack_left_columns(Strided<const From> from, T* to) {
    constexpr Index columns_at_once = 8;
    for (Index first = 0; first < from.cols; first += columns_at_once) {
        const Index end = std::min(first + columns_at_once, from.cols);
        for (Index i = 0, height = 0; i < from.rows; i += height) {
            height = TileShape::next_height(from.rows - i);
            const Strided<const From> tile = from.block(i, 0, height, from.cols);
            if (height == TileShape::height)
                pack_left_tile<T, TileShape::height>(tile, first, end, to + i * from.cols);
            else
                pack_left_tile<T, 0>(tile, first, end, to + i * from.cols);
        }
    }
    return {to, 0, 0, from.cols};
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
