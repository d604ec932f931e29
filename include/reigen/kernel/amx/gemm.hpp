#pragma once

#include <reigen/kernel/amx/factors.hpp>
#include <reigen/kernel/amx/few_rows.hpp>

#if defined(REIGEN_AMX)

#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/gemm_k_block.hpp>
#include <reigen/kernel/packed_weight.hpp>
#include <reigen/kernel/poll_clock.hpp>
#include <reigen/kernel/prefetch.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/workspace.hpp>

#include <algorithm>
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
    /// Up to so many rows a right factor whose rows are contiguous is multiplied as it lies, so many columns at a time.
    static constexpr Index streaming_rows = 4;
    static constexpr Index streamed_columns = 4096;
};

/// sums[16 Rows][16 Panels] of one strip. Where rows are few the strip comes from memory, and is fetched ahead.
template <int Rows, int Panels>
void sum_amx_tiles(const AmxLeft& left, const AmxStrip& strip, float* sums) {
    const RightPanel<BFloat16Pair> right = {strip.data, strip.panel, lanes<float>};
    zero_amx_sums();
    add_amx_groups<Rows, Panels>(strip.whole_groups, left, right, [&](const BFloat16Pair* at) REIGEN_INLINE_LAMBDA {
        if constexpr (Rows == 1)
            for (int panel = 0; panel < Panels; ++panel)
                for (Index line = 0; line < amx_rows; ++line)
                    prefetch(at + panel * strip.panel + (2 * amx_rows + line) * lanes<float>);
    });
    if (strip.rest > 0)
        add_amx_groups<Rows, Panels>(1, {left.data + strip.whole_groups * left.group, left.row, left.group, left.tile},
                                     {strip.tail, amx_tile, lanes<float>});
    store_amx_sums<Rows, Panels>(sums, Panels * lanes<float>);
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
          streams_right_(streams(c.rows, b)),
          keeps_sums_(!std::is_same_v<Out, float> && a.cols > Blocking::depth) {
        const Index k = amx_groups(std::min(a.cols, Blocking::depth)) * amx_k;
        const Index rows =
            streams_right_ ? c.rows : (std::min(c.rows, Blocking::packed_rows) + amx_rows - 1) / amx_rows * amx_rows;
        const Index wide =
            padded<float>(std::min(c.cols, streams_right_ ? Blocking::streamed_columns : Blocking::sum_columns));
        const Index packed = padded<float>(std::min(c.cols, Blocking::columns));
        const Index right_bytes = packs_right && !streams_right_ ? Memory::bytes<bfloat16>(k * packed) : 0;
        const Index left_bytes =
            streams_right_ ? Memory::bytes<float>(RowSums<float>::taken(rows, wide / lanes<float>) * lanes<float>)
                           : Memory::bytes<bfloat16>(rows * k);
        const Index sum_bytes = keeps_sums_ ? Memory::bytes<float>(rows * wide) : 0;
        std::byte* const memory = Memory::reserve(right_bytes + left_bytes + sum_bytes);
        packed_right_ = reinterpret_cast<BFloat16Pair*>(memory);
        packed_left_ = reinterpret_cast<BFloat16Pair*>(memory + right_bytes);
        row_sums_ = reinterpret_cast<float*>(packed_left_);
        kept_sums_ = reinterpret_cast<float*>(memory + right_bytes + left_bytes);
        sum_stride_ = wide;
    }

    void compute() {
        if constexpr (packs_right)
            if (streams_right_)
                return compute_few_rows();
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

    static bool streams(Index rows, const Factor& b) { return rows <= Blocking::streaming_rows && b.col_stride == 1; }
    static bool streams(Index, const PackedRight<bfloat16>&) { return false; } // tiles are loaded from it as it lies

    void compute_few_rows() {
        for (Index j = 0; j < c_.cols; j += Blocking::streamed_columns) {
            const Index columns = std::min(Blocking::streamed_columns, c_.cols - j);
            const RowSums<float> sums = {row_sums_, packets_for<float>(columns)};
            for (Index k = 0; k < a_.cols; k += Blocking::depth) {
                const Index depth = std::min(Blocking::depth, a_.cols - k);
                sum_few_rows(a_.block(0, k, c_.rows, depth), b_.block(k, j, depth, columns), sums);
                for (Index i = 0; i < c_.rows; ++i)
                    add_to_c(sums.at(i, 0), sums.packets, {i, j, i, 0, k == 0, k + depth == a_.cols}, 1, columns);
                clock_.advance(PollClock<float>::fewest_rows * columns * depth);
            }
        }
    }

    void compute_block(Index i, Index j, Index rows, Index columns) {
        const Index wide = packs_right ? Blocking::columns : columns;
        for (Index k = 0; k < a_.cols; k += Blocking::depth) {
            const Index depth = std::min(Blocking::depth, a_.cols - k);
            const AmxPackedLeft left(a_.block(i, k, rows, depth), packed_left_);
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
    void add_strips(const AmxPackedLeft& left, const RightPanel<BFloat16Pair>& right, Index depth, Place place,
                    Index rows, Index columns) {
        {
            const AmxRegisters registers;
            for (Index j = 0; j < columns; j += amx_strip) {
                const Index width = std::min(amx_strip, columns - j);
                const AmxStrip strip(right.from_packet(j / lanes<float>), packets_for<float>(width), depth);
                for (Index i = 0; i < rows; i += 2 * amx_rows) {
                    const Place tile = {place.i + i,   place.j + j, place.row + i,
                                        place.col + j, place.first, place.last};
                    add_tile(left.from_row(tile.row), strip, tile, std::min(2 * amx_rows, rows - i), width);
                }
            }
        }
        clock_.advance(rows * columns * depth / faster);
    }

    void add_tile(const AmxLeft& left, const AmxStrip& strip, const Place& place, Index rows, Index columns) {
        alignas(cache_line) float sums[2 * amx_rows * amx_strip];
        using Kernel = void (*)(const AmxLeft&, const AmxStrip&, float*);
        static constexpr Kernel kernels[2][2] = {{sum_amx_tiles<1, 1>, sum_amx_tiles<1, 2>},
                                                 {sum_amx_tiles<2, 1>, sum_amx_tiles<2, 2>}};
        kernels[rows > amx_rows ? 1 : 0][strip.count - 1](left, strip, sums);
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
    bool streams_right_; // in packets: its rows are contiguous, and those of the product few
    bool keeps_sums_;
    Index sum_stride_;
    BFloat16Pair* packed_right_;
    BFloat16Pair* packed_left_;
    float* row_sums_; // in the place of the packed left factor
    float* kept_sums_;
    PollClock<float> clock_;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#endif
