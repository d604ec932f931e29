#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/amx/strips.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/heads_view.hpp>
#include <reigen/kernel/microkernel.hpp>
#include <reigen/kernel/packet_math.hpp>
#include <reigen/kernel/transpose_packets.hpp>

#include <algorithm>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Attention works on panels of query rows, one row a lane, and on tiles of keys: what one panel does with one tile
// stays in the first cache. Scores are kept transposed, [keys][panel_rows], so that the largest score and the sum of a
// row are taken lane by lane, and keys and values enter the products as scalars, from rows as they lie in memory.

inline constexpr int panel_packets = 3;

/// Query rows in a panel.
template <class T>
inline constexpr int panel_rows = panel_packets * lanes<T>;

/// Keys in a tile: whole strips of every height below.
inline constexpr Index tile_keys = 96;

/// Rows of a micro-kernel that leaves registers for one row of its right factor.
template <int Width>
inline constexpr int strip_height = packet_registers == 32 ? (Width == 4 ? 6 : 8)
                                                           : (Width >= 3   ? 4
                                                              : Width == 2 ? 6
                                                                           : 8);

/// The strip for rows that are too few for one of this height. Few tiles have such rows, and every height is code: a
/// file takes longer to compile with strips of four between those of eight and of two.
constexpr int lower_strip(int height) {
    return height == 8 ? 2 : height / 2;
}

/// Calls finish(first row, tile) for every strip of rows of left * right, tallest strips first.
template <class M, int Width, int Height = strip_height<Width>, class Finish>
REIGEN_INLINE void multiply_strips(Index rows, Index depth, LeftPanel<M> left, RightPanel<M> right, Finish finish,
                                   Index first = 0) {
#if defined(REIGEN_AMX)
    if constexpr (in_tiles<M>)
        return multiply_strips_by_amx<Width>(rows, depth, left, right, finish);
#endif
    for (; first + Height <= rows; first += Height)
        finish(first, multiply_tile<M, Height, Width>(depth, left.from_row(first), right));
    if constexpr (Height > 1)
        if (first < rows)
            multiply_strips<M, Width, lower_strip(Height)>(rows, depth, left, right, finish, first);
}

/// The query rows that share a key head: row i is token i / group in query head h * group + i % group.
template <class T>
struct SharedRows {
    HeadsView<T> view;
    Index group = 1;

    Index count() const { return view.tokens * group; }
    Index heads() const { return view.heads / group; }
    Index token(Index i) const { return i / group; }
    Index head(Index h, Index i) const { return h * group + i % group; }
    T* row(Index b, Index h, Index i) const { return view.at(b, token(i), head(h, i)); }
};

template <class T>
SharedRows<const T> share_rows(HeadsView<const T> queries, Index key_heads) {
    require<ShapeError>(key_heads > 0 && queries.heads % key_heads == 0, "attention: ", queries.heads,
                        " query heads cannot be grouped over ", key_heads, " key heads");
    return {queries, queries.heads / key_heads};
}

/// Panels of all the query rows: those of sequence b and key head h lie one after the other.
template <class T>
struct PanelGrid {
    Index batch;
    Index heads; // key heads
    Index rows;  // query rows of one sequence and key head

    Index panels() const { return (rows + panel_rows<T> - 1) / panel_rows<T>; }
    Index count() const { return batch * heads * panels(); }
    Index index(Index b, Index h, Index panel) const { return (b * heads + h) * panels() + panel; }
    Index rows_of(Index panel) const { return std::min<Index>(panel_rows<T>, rows - panel * panel_rows<T>); }

    /// Calls visit(b, h, panel) for each.
    template <class Visit>
    void for_each(Visit visit) const {
        for (Index b = 0; b < batch; ++b)
            for (Index h = 0; h < heads; ++h)
                for (Index panel = 0; panel < panels(); ++panel)
                    visit(b, h, panel);
    }

    bool operator==(const PanelGrid&) const = default;
};

/// The rows of a panel as steps along their features: to[c * panel_rows + i] = scale * step c of row(i). Steps of pairs
/// are not scaled: that would round them once more. The lanes of missing rows are 0, and so are whole steps of tiles.
template <class M, class RowAt>
void pack_transposed(Index rows, Index features, [[maybe_unused]] SumOf<M> scale, RowAt row, M* to) {
    using T = SumOf<M>;
    constexpr Index L = lanes<T>;
    const auto scaled = [&](const Packet<T>& steps) REIGEN_INLINE_LAMBDA {
        if constexpr (k_in<M> == 1)
            return Eigen::internal::pmul(steps, broadcast<T>(scale));
        else
            return steps;
    };
    const auto step_of_row = [&](Index i, Index c) {
        using From = std::remove_pointer_t<decltype(row(i))>;
        const M step = multiplicand<M>(Strided<From>{row(i), features, 1, 1, 1}, c, 0);
        if constexpr (k_in<M> == 1)
            return scale * step;
        else
            return step;
    };
    for (Index first = 0; first < panel_rows<T>; first += L) {
        const Index count = std::clamp<Index>(rows - first, 0, L);
        Index c = 0;
        for (; count == L && (c + L) * k_in<M> <= features; c += L) {
            Packet<T> block[L];
            for (Index i = 0; i < L; ++i)
                block[i] = scaled(load_along_k<M>(row(first + i) + c * k_in<M>));
            transpose_packets<T>(block);
            for (Index i = 0; i < L; ++i)
                store_bits<M>(to + (c + i) * panel_rows<T> + first, block[i]);
        }
        for (; c < steps_in<M>(features); ++c)
            for (Index i = 0; i < L; ++i)
                to[c * panel_rows<T> + first + i] = i < count ? step_of_row(first + i, c) : M{};
    }
    std::fill(to + steps_in<M>(features) * panel_rows<T>, to + whole_steps<M>(steps_in<M>(features)) * panel_rows<T>,
              M{});
}

/// row(i)[c] = value(c, p, packet p of row c of the panel), for the rows of a panel that exist.
template <class T, class RowAt, class Value>
void unpack_transposed(Index rows, Index cols, const T* from, Value value, RowAt row) {
    constexpr Index L = lanes<T>;
    for (Index first = 0; first < rows; first += L) {
        const Index count = std::min<Index>(rows - first, L);
        const auto packet = [&](Index c) { return value(first / L, load<T>(from + c * panel_rows<T> + first)); };
        Index c = 0;
        for (; count == L && c + L <= cols; c += L) {
            Packet<T> block[L];
            for (Index i = 0; i < L; ++i)
                block[i] = packet(c + i);
            transpose_packets<T>(block);
            for (Index i = 0; i < L; ++i)
                store<T>(row(first + i) + c, block[i]);
        }
        for (; c < cols; ++c) {
            T column[L];
            store<T>(column, packet(c));
            for (Index i = 0; i < count; ++i)
                row(first + i)[c] = std::remove_reference_t<decltype(*row(first))>(column[i]);
        }
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
