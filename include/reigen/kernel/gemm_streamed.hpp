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
    /// How far ahead every panel is fetched. On a Zen 4, 1024 or 4096 bytes, or into the first-level cache, are slower.
    static constexpr Index bytes_ahead = 2048;
    /// Between two visits to C: one row is 1.08 times, 8 and 16 rows are 1.05 times as fast as with one to every block.
    static constexpr Index k_blocks = 3;

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

template <class From>
using StreamedUpdate = TileUpdate<Multiplicand<From>, StoredMultiplicand<From>>;

/// An update of Width panels while what follows in every panel is on its way: with it 4 rows reach 0.9 of the bandwidth
/// on a busy Zen 3 core, without it 0.7.
template <int Height, int Width, class M, class Stored>
REIGEN_INLINE void update_streams(TileUpdate<M, Stored> job) {
    job.a = {job.a.data, 1, Height}; // as it is; constants here, they leave registers to the panels
    update_by_blocks<Height, Width, (Width > 1)>(job, [panel = job.b.packet](const Stored* row) REIGEN_INLINE_LAMBDA {
        unrolled<Width>([&](auto p) REIGEN_INLINE_LAMBDA {
            prefetch(row + p * panel + StreamedTile::bytes_ahead / Index(sizeof(Stored)));
        });
    });
}

/// An update of Height rows and up to StreamedTile::width(Height) panels.
template <class From, int Height>
void update_streamed(const StreamedUpdate<From>& job) {
    constexpr Index L = lanes<Accumulator<From>>;
    constexpr int width = StreamedTile::width(Height);
    const Index packets = packets_for<Accumulator<From>>(job.c.cols);
    if (packets == width)
        return update_streams<Height, width>(job);
    for (Index p = 0; p < packets; ++p)
        update_streams<Height, 1>(StreamedUpdate<From>{job.depth, job.a, job.b.from_packet(p), job.alpha, job.beta,
                                                       job.c.block(0, p * L, Height, std::min(L, job.c.cols - p * L))});
}

/// update_streamed for every height: kernel(height).
template <class From>
class StreamedKernels {
  public:
    using Kernel = void (*)(const StreamedUpdate<From>&);

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
    constexpr Index depth_at_once = StreamedTile::k_blocks * gemm_k_block<From>;
    const Index high = StreamedTile::even_height(c.rows);
    const Index steps = steps_in<M>(a.cols);
    for (Index i = 0; i < c.rows; i += high)
        interleave_rows<M>(a.block(i, 0, std::min(high, c.rows - i), a.cols), left + i * steps);
    const Index wide = StreamedTile::width(int(high)) * lanes<T>;
    for (Index j = 0; j < c.cols; j += wide) {
        const Index columns = std::min(wide, c.cols - j);
        for (Index k = 0; k < a.cols; k += depth_at_once) {
            const Index depth = std::min(depth_at_once, a.cols - k);
            const auto right = b.block(k, j, depth, columns).panels();
            for (Index i = 0; i < c.rows; i += high) {
                const Index rows = std::min(high, c.rows - i);
                const LeftPanel<M> panel = {left + i * steps + k / k_in<M> * rows, 1, rows};
                StreamedKernels<From>::kernel(rows)(
                    {steps_in<M>(depth), panel, right, alpha, k == 0 ? beta : T(1), c.block(i, j, rows, columns)});
            }
            clock.advance(std::max(c.rows, PollClock<T>::fewest_rows) * padded<T>(columns) * depth);
        }
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
