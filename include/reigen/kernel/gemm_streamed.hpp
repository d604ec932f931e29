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

/// Rows of a left factor, interleaved: [k][rows].
template <class T, class From>
void interleave_rows(Strided<const From> rows, T* to) {
    for (Index i = 0; i < rows.rows; ++i)
        for (Index k = 0; k < rows.cols; ++k)
            to[k * rows.rows + i] = T(rows(i, k));
}

/// The sums of Height rows and Width panels over one k-block, [Height][Width packets], while what follows in every panel
/// is on its way: with it 4 rows reach 0.9 of the bandwidth on a busy Zen 3 core, without it 0.7.
template <class T, int Height, int Width, class From>
REIGEN_INLINE void sum_streams(Index depth, const T* left, RightPanel<From> right, T* sums) {
    constexpr Index ahead = 2048 / Index(sizeof(From));
    const auto fetch_ahead = [&](const From* row) REIGEN_INLINE_LAMBDA {
        unrolled<Width>([&](auto p) REIGEN_INLINE_LAMBDA { prefetch(row + p * right.packet + ahead); });
    };
    auto tile = multiply_tile<T, Height, Width>(depth, LeftPanel<T>{left, 1, Height}, right, fetch_ahead);
    unrolled<Height * Width>([&](auto n) REIGEN_INLINE_LAMBDA { store<T>(sums + n * lanes<T>, tile.sum[n]); });
}

/// A k-block of alpha A B + beta C for Height rows and up to StreamedTile::width(Height) panels.
template <class T, int Height, class From>
void update_streamed(Index depth, const T* left, PackedRight<From> right, T alpha, T beta, Strided<T> c) {
    constexpr int width = StreamedTile::width(Height);
    alignas(cache_line) T sums[Height * width * lanes<T>];
    const Index packets = packets_for<T>(c.cols);
    if (packets == width) {
        sum_streams<T, Height, width>(depth, left, right.panels(), sums);
        return update_from_memory(sums, packets, alpha, beta, c);
    }
    for (Index p = 0; p < packets; ++p) {
        const Index column = p * lanes<T>;
        sum_streams<T, Height, 1>(depth, left, right.panels().from_packet(p), sums);
        update_from_memory(sums, 1, alpha, beta,
                           c.block(0, column, Height, std::min<Index>(lanes<T>, c.cols - column)));
    }
}

/// update_streamed for every height: kernel(height).
template <class T, class From>
class StreamedKernels {
  public:
    using Kernel = void (*)(Index, const T*, PackedRight<From>, T, T, Strided<T>);

    static Kernel kernel(Index height) { return table[std::size_t(height - 1)]; }

  private:
    template <int... Height>
    static constexpr auto make(std::integer_sequence<int, Height...>) {
        return std::array<Kernel, sizeof...(Height)>{update_streamed<T, Height + 1, From>...};
    }
    static constexpr auto table = make(std::make_integer_sequence<int, int(StreamedTile::height)>());
};

/// C = alpha A B + beta C. `left` has room for A.
template <class T, class From>
void multiply_streamed(T alpha, Strided<const From> a, PackedRight<From> b, T beta, Strided<T> c, T* left,
                       PollClock<T>& clock) {
    const Index high = StreamedTile::even_height(c.rows);
    for (Index i = 0; i < c.rows; i += high)
        interleave_rows<T>(a.block(i, 0, std::min(high, c.rows - i), a.cols), left + i * a.cols);
    const Index wide = StreamedTile::width(int(high)) * lanes<T>;
    for (Index j = 0; j < c.cols; j += wide) {
        const Index columns = std::min(wide, c.cols - j);
        for (Index k = 0; k < a.cols; k += gemm_k_block<T>) {
            const Index depth = std::min(gemm_k_block<T>, a.cols - k);
            const PackedRight<From> right = b.block(k, j, depth, columns);
            for (Index i = 0; i < c.rows; i += high) {
                const Index rows = std::min(high, c.rows - i);
                StreamedKernels<T, From>::kernel(rows)(depth, left + i * a.cols + k * rows, right, alpha,
                                                       k == 0 ? beta : T(1), c.block(i, j, rows, columns));
            }
            clock.advance(c.rows * padded<T>(columns) * depth);
        }
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
