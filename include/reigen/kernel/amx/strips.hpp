#pragma once

#include <reigen/kernel/amx/tiles.hpp>

#if defined(REIGEN_AMX)

#include <reigen/kernel/prefetch.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Tile registers' sums of up to 32 rows and `Width` packets into memory, [32][Width][lanes].
template <int Rows, int Width>
void sum_amx_strip(Index groups, const AmxLeft& left, const RightPanel<BFloat16Pair>& right, float* sums) {
    unrolled<(Width + 1) / 2>([&](auto pair) REIGEN_INLINE_LAMBDA {
        constexpr int first = 2 * pair, panels = Width - first >= 2 ? 2 : 1;
        zero_amx_sums();
        add_amx_groups<Rows, panels>(groups, left, right.from_packet(first));
        store_amx_sums<Rows, panels>(sums + first * lanes<float>, Width * lanes<float>);
    });
}

/// Calls finish(first row, tile) for rows [first, end) of sums that lie in memory, `Height` of them at a time.
template <int Width, int Height, class Finish>
REIGEN_INLINE void finish_strips(Index first, Index end, const float* sums, Finish& finish) {
    for (; first + Height <= end; first += Height, sums += Height * Width * lanes<float>) {
        Tile<float, Height, Width> tile;
        unrolled<Height * Width>([&](auto n)
                                     REIGEN_INLINE_LAMBDA { tile.sum[n] = load<float>(sums + n * lanes<float>); });
        finish(first, tile);
    }
    if constexpr (Height > 1)
        if (first < end)
            finish_strips<Width, Height == 4 ? 2 : 1>(first, end, sums, finish);
}

/// multiply_strips by AMX: the sums of 32 rows at a time, on their way through memory.
///
/// Both factors end in zeros up to a whole group along what is summed over. Of a left factor rows of whole tiles are
/// read; what lies behind the last one touches no sum of it.
template <int Width, class Finish>
void multiply_strips_by_amx(Index rows, Index steps, LeftPanel<BFloat16Pair> left, RightPanel<BFloat16Pair> right,
                            Finish finish) {
    constexpr Index high = 2 * amx_rows;
    const Index groups = whole_steps<BFloat16Pair>(steps) / amx_rows;
    alignas(cache_line) float sums[high * Width * lanes<float>];
    for (Index first = 0; first < rows; first += high) {
        const AmxLeft tiles = {left.from_row(first).data, left.row, amx_rows, amx_rows * left.row};
        const Index end = std::min(first + high, rows);
        if (end - first > amx_rows)
            sum_amx_strip<2, Width>(groups, tiles, right, sums);
        else
            sum_amx_strip<1, Width>(groups, tiles, right, sums);
        finish_strips<Width, 4>(first, end, sums, finish);
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#endif
