#pragma once

#include <reigen/kernel/gemm_k_block.hpp>
#include <reigen/kernel/packed_weight.hpp>
#include <reigen/kernel/poll_clock.hpp>
#include <reigen/kernel/prefetch.hpp>
#include <reigen/kernel/tile_update.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// A product of few rows with a packed factor, which is read once from memory: strip of panels after strip, each from its
// first row to its last, so that every panel is a stream. A tile has all the rows if it can: a second one would compute
// while nothing arrives.

struct StreamedTile {
    /// Rows of the tallest tile.
    static constexpr Index height = packet_registers / 2 - 2;
    /// Up to here products are computed so.
    static constexpr Index rows = 16;

    /// Panels beside each other: what registers allow, and a core follows.
    static constexpr int width(int height_) { return std::clamp((packet_registers - 1) / (height_ + 1), 1, 4); }

    /// Rows are shared evenly by as few tiles as possible.
    static constexpr Index even_height(Index rows_) {
        const Index tiles = (rows_ + height - 1) / height;
        return (rows_ + tiles - 1) / tiles;
    }
};

/// Rows of a left factor, interleaved: [steps along k][rows].
template <class M, class From>
void interleave_rows(Strided<const From> rows, M* to) {
    for (Index i = 0; i < rows.rows; ++i)
        for (Index step = 0; step < steps_in<M>(rows.cols); ++step)
            to[step * rows.rows + i] = multiplicand<M>(rows.transpose(), step, i);
}

/// The sums of Height rows and Width panels over one k-block, [Height][Width packets], while what follows in every panel
/// is on its way: with it 4 rows reach 0.9 of the bandwidth on a busy Zen 3 core, without it 0.7.
template <class M, int Height, int Width, class Stored>
REIGEN_INLINE void sum_streams(Index depth, const M* left, RightPanel<Stored> right, SumOf<M>* sums) {
    using T = SumOf<M>;
    constexpr Index ahead = 2048 / Index(sizeof(Stored));
    const auto fetch_ahead = [&](const Stored* row) REIGEN_INLINE_LAMBDA {
        unrolled<Width>([&](auto p) REIGEN_INLINE_LAMBDA { prefetch(row + p * right.packet + ahead); });
    };
    auto tile = multiply_tile<M, Height, Width>(depth, LeftPanel<M>{left, 1, Height}, right, fetch_ahead);
    unrolled<Height * Width>([&](auto n) REIGEN_INLINE_LAMBDA { store<T>(sums + n * lanes<T>, tile.sum[n]); });
}

/// A k-block of alpha A B + beta C for Height rows and up to StreamedTile::width(Height) panels.
template <class From, int Height>
void update_streamed(Index depth, const Multiplicand<From>* left, PackedRight<From> right, Accumulator<From> alpha,
                     Accumulator<From> beta, Strided<Accumulator<From>> c) {
    using T = Accumulator<From>;
    using M = Multiplicand<From>;
    constexpr int width = StreamedTile::width(Height);
    alignas(cache_line) T sums[Height * width * lanes<T>];
    const Index packets = packets_for<T>(c.cols);
    if (packets == width) {
        sum_streams<M, Height, width>(depth, left, right.panels(), sums);
        return update_from_memory(sums, packets, alpha, beta, c);
    }
    for (Index p = 0; p < packets; ++p) {
        const Index column = p * lanes<T>;
        sum_streams<M, Height, 1>(depth, left, right.panels().from_packet(p), sums);
        update_from_memory(sums, 1, alpha, beta,
                           c.block(0, column, Height, std::min<Index>(lanes<T>, c.cols - column)));
    }
}

/// update_streamed for every height: kernel(height).
template <class From>
class StreamedKernels {
    using T = Accumulator<From>;

  public:
    using Kernel = void (*)(Index, const Multiplicand<From>*, PackedRight<From>, T, T, Strided<T>);

    static Kernel kernel(Index height) { return table[std::size_t(height - 1)]; }

  private:
    template <int... Height>
    static constexpr auto make(std::integer_sequence<int, Height...>) {
        return std::array<Kernel, sizeof...(Height)>{update_streamed<From, Height + 1>...};
    }
    static constexpr auto table = make(std::make_integer_sequence<int, int(StreamedTile::height)>());
};

/// C = alpha A B + beta C. `left` has room for A.
template <class From, class T = Accumulator<From>>
void multiply_streamed(T alpha, Strided<const From> a, PackedRight<From> b, T beta, Strided<T> c,
                       Multiplicand<From>* left, PollClock<T>& clock) {
    using M = Multiplicand<From>;
    const Index high = StreamedTile::even_height(c.rows);
    const Index steps = steps_in<M>(a.cols);
    for (Index i = 0; i < c.rows; i += high)
        interleave_rows<M>(a.block(i, 0, std::min(high, c.rows - i), a.cols), left + i * steps);
    const Index wide = StreamedTile::width(int(high)) * lanes<T>;
    for (Index j = 0; j < c.cols; j += wide) {
        const Index columns = std::min(wide, c.cols - j);
        for (Index k = 0; k < a.cols; k += gemm_k_block<From>) {
            const Index depth = std::min(gemm_k_block<From>, a.cols - k);
            const PackedRight<From> right = b.block(k, j, depth, columns);
            for (Index i = 0; i < c.rows; i += high) {
                const Index rows = std::min(high, c.rows - i);
                StreamedKernels<From>::kernel(rows)(steps_in<M>(depth), left + i * steps + k / k_in<M> * rows, right,
                                                    alpha, k == 0 ? beta : T(1), c.block(i, j, rows, columns));
            }
            clock.advance(c.rows * padded<T>(columns) * steps_in<M>(depth));
        }
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
