#pragma once

#include <reigen/kernel/amx.hpp>

#if defined(REIGEN_AMX)

#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/gemm_k_block.hpp>
#include <reigen/kernel/pack.hpp>
#include <reigen/kernel/packed_weight.hpp>
#include <reigen/kernel/poll_clock.hpp>
#include <reigen/kernel/prefetch.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/transpose_packets.hpp>
#include <reigen/kernel/workspace.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// How much of each factor is worked on at a time.
struct AmxBlocking {
    /// Along k: what one chain of sums covers.
    static constexpr Index depth = gemm_k_block<bfloat16>;
    static_assert(depth % amx_k == 0);
    /// Rows of the left factor packed at once, 2 MB, and of them used with one strip after the other, 0.5 MB.
    static constexpr Index packed_rows = 1024;
    static constexpr Index left_rows = 256;
    /// Columns of the right factor packed at once: 1 MB.
    static constexpr Index columns = 512;
    /// Columns of sums that are kept in float until they are rounded, where k is longer than `depth`: 4 MB.
    static constexpr Index sum_columns = 1024;
};

/// Columns of a strip: two panels.
inline constexpr Index amx_strip = 2 * lanes<float>;

constexpr Index amx_groups(Index k) {
    return (k + amx_k - 1) / amx_k;
}

/// Left factor [m, k] as tiles [m / 16][k / 32][16][32], zeros behind the last row and the last k.
class AmxLeft {
  public:
    AmxLeft(Strided<const bfloat16> from, bfloat16* to) : tiles_(to), groups_(amx_groups(from.cols)) {
        for (Index i = 0; i < from.rows; i += amx_rows) {
            const Index rows = std::min(amx_rows, from.rows - i);
            pack_tile(from.block(i, 0, rows, from.cols), to + i / amx_rows * tile());
        }
    }

    /// Bfloat16 of a row of tiles.
    Index tile() const { return groups_ * amx_left; }
    const bfloat16* row(Index i) const { return tiles_ + i / amx_rows * tile(); }

  private:
    static void pack_tile(Strided<const bfloat16> from, bfloat16* to) {
        const Index whole = from.cols / amx_k;
        for (Index i = from.rows; i < amx_rows; ++i)
            for (Index group = 0; group < amx_groups(from.cols); ++group)
                std::fill_n(to + group * amx_left + i * amx_k, amx_k, bfloat16(0));
        if (from.col_stride == 1)
            for (Index i = 0; i < from.rows; ++i)
                for (Index group = 0; group < whole; ++group)
                    std::memcpy(static_cast<void*>(to + group * amx_left + i * amx_k), from.row(i) + group * amx_k,
                                amx_k * sizeof(bfloat16));
        else if (from.row_stride == 1 && from.rows == amx_rows)
            for (Index group = 0; group < whole; ++group)
                transpose_group(from.block(0, group * amx_k, amx_rows, amx_k), to + group * amx_left);
        else
            for (Index group = 0; group < whole; ++group)
                pack_group(from.block(0, group * amx_k, from.rows, amx_k), to + group * amx_left);
        if (whole * amx_k < from.cols)
            pack_group(from.block(0, whole * amx_k, from.rows, from.cols - whole * amx_k), to + whole * amx_left);
    }

    /// One group of any strides, of fewer k perhaps.
    static void pack_group(Strided<const bfloat16> from, bfloat16* to) {
        for (Index i = 0; i < from.rows; ++i, to += amx_k) {
            for (Index k = 0; k < from.cols; ++k)
                to[k] = from(i, k);
            std::fill(to + from.cols, to + amx_k, bfloat16(0));
        }
    }

    /// One group whose columns are contiguous.
    static void transpose_group(Strided<const bfloat16> from, bfloat16* to) {
        constexpr int L = lanes<float>;
        static_assert(L == amx_rows && 2 * L == amx_k);
        Packet<float> pairs[L];
        unrolled<L>([&](auto step) REIGEN_INLINE_LAMBDA {
            const PairPacket rows = load_step<BFloat16Pair>(from.transpose(), step, 0);
            std::memcpy(&pairs[step], &rows, sizeof rows);
        });
        transpose_packets<float>(pairs);
        unrolled<L>([&](auto i) REIGEN_INLINE_LAMBDA {
            std::memcpy(static_cast<void*>(to + i * amx_k), &pairs[i], amx_k * sizeof(bfloat16));
        });
    }

    bfloat16* tiles_;
    Index groups_;
};

/// Up to two panels of the right factor over one depth, with a copy of their last k that fill no whole group, zeros
/// behind them: what lies there is another part of the factor, or nothing.
class AmxStrip {
  public:
    AmxStrip(const RightPanel<BFloat16Pair>& panels, Index panel_count, Index k)
        : data(panels.data), panel(panels.packet), count(panel_count), whole_groups(k / amx_k), rest(k % amx_k) {
        if (rest == 0)
            return;
        std::fill_n(tail, 2 * tail_panel, BFloat16Pair{});
        for (Index p = 0; p < count; ++p) {
            const BFloat16Pair* const from = data + p * panel + whole_groups * tail_panel;
            std::copy_n(from, (rest + 1) / 2 * lanes<float>, tail + p * tail_panel);
            if (rest % 2 != 0)
                for (Index j = 0; j < lanes<float>; ++j)
                    tail[p * tail_panel + rest / 2 * lanes<float> + j].second = bfloat16(0);
        }
    }

    static constexpr Index tail_panel = amx_k / 2 * lanes<float>; // pairs of one group

    const BFloat16Pair* data;
    Index panel;
    Index count;
    Index whole_groups;
    Index rest; // k
    BFloat16Pair tail[2 * tail_panel];
};

/// sums[16 Rows][16 Panels] of one strip. Where rows are few the strip comes from memory, and is fetched ahead.
template <int Rows, int Panels>
void sum_amx_tiles(const bfloat16* left, Index left_tile, const AmxStrip& strip, float* sums) {
    AmxFactors at = {left, left_tile, strip.data, strip.panel};
    asm volatile("" ::: "memory"); // g++ 12 does not know that tiles are loaded from memory
    zero_amx_sums();
    for (Index group = 0; group < strip.whole_groups; ++group) {
        if constexpr (Rows == 1)
            for (int panel = 0; panel < Panels; ++panel)
                for (Index line = 0; line < amx_rows; ++line)
                    prefetch(at.right + panel * at.panel + (2 * amx_rows + line) * lanes<float>);
        add_amx_group<Rows, Panels>(at);
        at.left += amx_left;
        at.right += AmxStrip::tail_panel;
    }
    if (strip.rest > 0)
        add_amx_group<Rows, Panels>({at.left, left_tile, strip.tail, AmxStrip::tail_panel});
    store_amx_sums<Rows, Panels>(sums);
}

using AmxMemory = Workspace<struct AmxTag>;

/// C = alpha A B + beta C by AMX, on one thread.
template <class Right, class Out>
class AmxProduct {
    using Factor = Strided<const bfloat16>;
    using Blocking = AmxBlocking;
    using Memory = AmxMemory;
    static constexpr bool packs_right = std::is_same_v<Right, Factor>;

  public:
    AmxProduct(float alpha, Factor a, Right b, float beta, Strided<Out> c)
        : alpha_(alpha),
          beta_(beta),
          a_(a),
          b_(b),
          c_(c),
          keeps_sums_(!std::is_same_v<Out, float> && a.cols > Blocking::depth) {
        const Index k = amx_groups(std::min(a.cols, Blocking::depth)) * amx_k;
        const Index rows = (std::min(c.rows, Blocking::packed_rows) + amx_rows - 1) / amx_rows * amx_rows;
        const Index right_bytes =
            packs_right ? Memory::bytes<bfloat16>(k * padded<float>(std::min(c.cols, Blocking::columns))) : 0;
        const Index left_bytes = Memory::bytes<bfloat16>(rows * k);
        sum_stride_ = padded<float>(std::min(c.cols, Blocking::sum_columns));
        const Index sum_bytes = keeps_sums_ ? Memory::bytes<float>(rows * sum_stride_) : 0;
        std::byte* const memory = Memory::reserve(right_bytes + left_bytes + sum_bytes);
        packed_right_ = reinterpret_cast<BFloat16Pair*>(memory);
        packed_left_ = reinterpret_cast<bfloat16*>(memory + right_bytes);
        kept_sums_ = reinterpret_cast<float*>(memory + right_bytes + left_bytes);
    }

    void compute() {
        const Index wide = keeps_sums_ ? Blocking::sum_columns : c_.cols;
        for (Index j = 0; j < c_.cols; j += wide)
            for (Index i = 0; i < c_.rows; i += Blocking::packed_rows)
                compute_block(i, j, std::min(Blocking::packed_rows, c_.rows - i), std::min(wide, c_.cols - j));
    }

  private:
    /// Where a tile lies in C, and in which part of k it is.
    struct Place {
        Index i, j;     // in C
        Index row, col; // in the kept sums
        bool first, last;
    };

    void compute_block(Index i, Index j, Index rows, Index columns) {
        const Index wide = packs_right ? Blocking::columns : columns;
        for (Index k = 0; k < a_.cols; k += Blocking::depth) {
            const Index depth = std::min(Blocking::depth, a_.cols - k);
            const AmxLeft left(a_.block(i, k, rows, depth), packed_left_);
            for (Index col = 0; col < columns; col += wide) {
                const Index width = std::min(wide, columns - col);
                const auto right = panels_of(b_.block(k, j + col, depth, width));
                for (Index row = 0; row < rows; row += Blocking::left_rows) {
                    const Place place = {i + row, j + col, row, col, k == 0, k + depth == a_.cols};
                    add_strips(left, right, depth, place, std::min(Blocking::left_rows, rows - row), width);
                }
            }
        }
    }

    RightPanel<BFloat16Pair> panels_of(Factor b) {
        const Index panel = lanes<float> * steps_in<BFloat16Pair>(b.rows);
        pack_right<BFloat16Pair>(b, packed_right_, panel);
        clock_.advance(PollClock<float>::fewest_rows * b.rows * b.cols);
        return {packed_right_, panel, lanes<float>};
    }
    RightPanel<BFloat16Pair> panels_of(PackedRight<bfloat16> b) { return b.panels(); }

    /// Strip after strip of the right factor, each with all rows.
    void add_strips(const AmxLeft& left, const RightPanel<BFloat16Pair>& right, Index depth, Place place, Index rows,
                    Index columns) {
        {
            const AmxRegisters registers;
            for (Index j = 0; j < columns; j += amx_strip) {
                const Index width = std::min(amx_strip, columns - j);
                const AmxStrip strip(right.from_packet(j / lanes<float>), packets_for<float>(width), depth);
                for (Index i = 0; i < rows; i += 2 * amx_rows) {
                    const Place tile = {place.i + i,   place.j + j, place.row + i,
                                        place.col + j, place.first, place.last};
                    add_tile(left.row(tile.row), left.tile(), strip, tile, std::min(2 * amx_rows, rows - i), width);
                }
            }
        }
        clock_.advance(rows * columns * depth / faster);
    }

    void add_tile(const bfloat16* left, Index left_tile, const AmxStrip& strip, const Place& place, Index rows,
                  Index columns) {
        alignas(cache_line) float sums[2 * amx_rows * amx_strip];
        const bool high = rows > amx_rows, wide = strip.count > 1;
        const auto sum = high   ? wide ? sum_amx_tiles<2, 2> : sum_amx_tiles<2, 1>
                           : wide ? sum_amx_tiles<1, 2>
                                : sum_amx_tiles<1, 1>;
        sum(left, left_tile, strip, sums);
        add_to_c(sums, strip.count, place, rows, columns);
    }

    void add_to_c(const float* sums, Index packets, const Place& place, Index rows, Index columns) {
        const Strided<Out> c = c_.block(place.i, place.j, rows, columns);
        const float beta = place.first ? beta_ : 1;
        if constexpr (std::is_same_v<Out, float>) {
            update_from_memory(sums, packets, alpha_, beta, c, c);
        } else {
            const Strided<float> kept = {kept_sums_ + place.row * sum_stride_ + place.col, rows, columns, sum_stride_,
                                         1};
            if (place.first && place.last)
                update_from_memory(sums, packets, alpha_, beta, c, c);
            else if (place.first)
                update_from_memory(sums, packets, alpha_, beta, c, kept);
            else if (place.last)
                update_from_memory(sums, packets, alpha_, beta, kept, c);
            else
                update_from_memory(sums, packets, alpha_, beta, kept, kept);
        }
    }

    /// Than products of float, by which the clock counts.
    static constexpr Index faster = 8;

    float alpha_;
    float beta_;
    Factor a_;
    Right b_;
    Strided<Out> c_;
    bool keeps_sums_;
    Index sum_stride_;
    BFloat16Pair* packed_right_;
    bfloat16* packed_left_;
    float* kept_sums_;
    PollClock<float> clock_;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#endif
