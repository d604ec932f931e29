#pragma once

#include <reigen/kernel/gemm_blocks.hpp>
#include <reigen/kernel/parallel.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// A grid of parts of C, one a thread: columns are divided first, since a part packs the right factor of its own.
struct ThreadGrid {
    Index rows = 1;
    Index cols = 1;

    /// A part of fewer than two tiles would cost more to hand out than it saves.
    template <class T>
    static ThreadGrid over(const Strided<T>& c, Index depth) {
        constexpr Index width = lanes<Accumulator<T>>;
        constexpr Index part_width = 2 * TileShape::width * width, part_height = 2 * TileShape::height;
        const Index threads = threads_for<Accumulator<T>>(double(c.rows) * double(c.cols) * double(depth));
        ThreadGrid grid;
        grid.cols = std::clamp<Index>(c.cols / part_width, 1, threads);
        grid.rows = std::clamp<Index>(c.rows / part_height, 1, std::max<Index>(threads / grid.cols, 1));
        return grid;
    }
};

/// multiply_blocks on as many threads as pay. No bit depends on how many: a product's parts are the products of parts.
template <class From, class Right, class Out>
void multiply_parts(Accumulator<From> alpha, Strided<const From> a, Right b, Accumulator<From> beta, Strided<Out> c) {
    using Blocking = GemmBlocking<Multiplicand<From>>;
    const ThreadGrid grid = ThreadGrid::over(c, a.cols);
    const Index wide =
        Blocking::even(c.cols, (c.cols + grid.cols - 1) / grid.cols, TileShape::width * lanes<Accumulator<From>>);
    const Index high = Blocking::even(c.rows, (c.rows + grid.rows - 1) / grid.rows, TileShape::height);
    for_each_part(grid.rows * grid.cols, [&](Index part) {
        const Index i = std::min(part / grid.cols * high, c.rows), j = std::min(part % grid.cols * wide, c.cols);
        const Index rows = std::min(high, c.rows - i), columns = std::min(wide, c.cols - j);
        if (rows > 0 && columns > 0)
            multiply_blocks<From>(alpha, a.block(i, 0, rows, a.cols), b.block(0, j, b.rows, columns), beta,
                                  c.block(i, j, rows, columns));
    });
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
