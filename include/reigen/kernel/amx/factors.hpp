#pragma once

#include <reigen/kernel/amx/tiles.hpp>

#if defined(REIGEN_AMX)

#include <reigen/kernel/pack.hpp>

#include <algorithm>
#include <cstring>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// The factors of a product as tiles are loaded from them.

constexpr Index amx_groups(Index k) {
    return (k + amx_k - 1) / amx_k;
}

/// Left factor [m, k] as tiles [m / 16][k / 32][16][16 pairs], zeros behind the last row and the last k.
class AmxPackedLeft {
  public:
    AmxPackedLeft(Strided<const bfloat16> from, BFloat16Pair* to) : tiles_(to), groups_(amx_groups(from.cols)) {
        for (Index i = 0; i < from.rows; i += amx_rows) {
            const Index rows = std::min(amx_rows, from.rows - i);
            pack_tile(from.block(i, 0, rows, from.cols), to + i * groups_ * amx_k / 2);
        }
    }

    /// The tiles from row i on, which begins one.
    AmxLeft from_row(Index i) const {
        return {tiles_ + i * groups_ * amx_k / 2, amx_k / 2, amx_tile, groups_ * amx_tile};
    }

  private:
    static void pack_tile(Strided<const bfloat16> from, BFloat16Pair* to) {
        for (Index k = 0; k < from.cols; k += amx_k, to += amx_tile) {
            const Strided<const bfloat16> group = from.block(0, k, from.rows, std::min(amx_k, from.cols - k));
            if (group.cols == amx_k && from.col_stride == 1)
                copy_rows(group, to);
            else if (group.cols == amx_k && from.row_stride == 1 && group.rows == amx_rows)
                transpose_to_tile(group.transpose(), to, amx_k / 2);
            else
                copy_elements(group, to);
            std::fill(to + from.rows * amx_k / 2, to + amx_tile, BFloat16Pair{});
        }
    }

    static void copy_rows(Strided<const bfloat16> group, BFloat16Pair* to) {
        for (Index i = 0; i < group.rows; ++i)
            std::memcpy(static_cast<void*>(to + i * amx_k / 2), group.row(i), amx_k * sizeof(bfloat16));
    }

    static void copy_elements(Strided<const bfloat16> group, BFloat16Pair* to) {
        for (Index i = 0; i < group.rows; ++i)
            for (Index step = 0; step < amx_k / 2; ++step)
                *to++ = 2 * step < group.cols ? multiplicand<BFloat16Pair>(group.transpose(), step, i) : BFloat16Pair{};
    }

    BFloat16Pair* tiles_;
    Index groups_;
};

/// Columns of a strip: two panels.
inline constexpr Index amx_strip = 2 * lanes<float>;

/// Up to two panels of the right factor over one depth, with a copy of their last k that fill no whole group, zeros
/// behind them: what lies there is another part of the factor, or nothing.
class AmxStrip {
  public:
    AmxStrip(const RightPanel<BFloat16Pair>& panels, Index panel_count, Index k)
        : data(panels.data), panel(panels.packet), count(panel_count), whole_groups(k / amx_k), rest(k % amx_k) {
        if (rest == 0)
            return;
        for (Index p = 0; p < count; ++p) {
            const BFloat16Pair* const from = data + p * panel + whole_groups * amx_tile;
            std::copy_n(from, (rest + 1) / 2 * lanes<float>, tail + p * amx_tile);
            if (rest % 2 != 0)
                for (Index j = 0; j < lanes<float>; ++j)
                    tail[p * amx_tile + rest / 2 * lanes<float> + j].second = bfloat16(0);
        }
    }

    const BFloat16Pair* data;
    Index panel;
    Index count;
    Index whole_groups;
    Index rest; // k
    BFloat16Pair tail[2 * amx_tile] = {};
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#endif
