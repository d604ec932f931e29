#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/microkernel.hpp>
#include <reigen/kernel/prefetch.hpp>

#include <algorithm>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The largest tile: as many packets of sums as registers allow beside one row of the right factor and one scalar.
///
/// On packed panels AVX-512 8x48 float reaches 0.96 of the multiply-add peak and AVX2 6x16 0.97; 6x64, 14x32 and 4x24
/// are within a hundredth. SSE has no third operand: its copies and shuffles fill the front end, and 3x12, which needs
/// fewest of them, reaches 0.73 to 0.75 under both compilers; 6x8 0.70 to 0.77, 4x12 0.50 to 0.70.
struct TileShape {
#if defined(__AVX__) || defined(__aarch64__)
    static constexpr int height = packet_registers == 32 ? 8 : 6;
    static constexpr int width = packet_registers == 32 ? 3 : 2;
#else
    static constexpr int height = 3;
    static constexpr int width = 3;
#endif

    /// How much of what is left the next tile takes: all but the last two are full, those two share evenly.
    static constexpr Index next(Index left, Index full) {
        return left <= full ? left : left < 2 * full ? (left + 1) / 2 : full;
    }
    static constexpr Index next_height(Index rows) { return next(rows, height); }
    static constexpr Index next_width(Index packets) { return next(packets, width); }
    static constexpr Index tiles(Index rows, Index packets) {
        return ((rows + height - 1) / height) * ((packets + width - 1) / width);
    }
};

/// One step C = alpha A B + beta C on a tile, over one k-block.
template <class T>
struct TileUpdate {
    Index depth;
    LeftPanel<T> a;
    RightPanel<T> b;
    T alpha;
    T beta;
    Strided<T> c; // of the tile; its last packet may have fewer columns than lanes
};

/// alpha sum + beta c, the same arithmetic for every element of every tile; c is not looked at where beta is 0.
template <class T, class LoadC>
REIGEN_INLINE Packet<T> updated(const Packet<T>& sum, T alpha, T beta, LoadC load_c) {
    const Packet<T> scale = broadcast<T>(alpha);
    if (beta == T(0))
        return Eigen::internal::pmul(scale, sum);
    return multiply_add<T>(scale, sum, Eigen::internal::pmul(broadcast<T>(beta), load_c()));
}

/// The update of a tile of any shape, its sums in memory: also where C has gaps between its columns, or fewer of them.
template <class T>
void update_from_memory(const T* sums, Index packets, T alpha, T beta, Strided<T> tile) {
    const Index stride = tile.col_stride;
    for (Index i = 0; i < tile.rows; ++i)
        for (Index p = 0; p < packets; ++p, sums += lanes<T>) {
            T* const c = &tile(i, p * lanes<T>);
            const int count = int(std::min<Index>(lanes<T>, tile.cols - p * lanes<T>));
            const bool whole = stride == 1 && count == lanes<T>;
            const Packet<T> result = updated<T>(load<T>(sums), alpha, beta, [&]() REIGEN_INLINE_LAMBDA {
                return whole ? load<T>(c) : load_some<T>(c, stride, count);
            });
            if (whole)
                store<T>(c, result);
            else
                store_some<T>(c, stride, count, result);
        }
}

/// The update of a full tile of contiguous rows, straight from the registers.
template <class T>
REIGEN_INLINE void update_from_registers(Tile<T, TileShape::height, TileShape::width>& tile, const TileUpdate<T>& job) {
    unrolled<TileShape::height>([&](auto i) REIGEN_INLINE_LAMBDA {
        unrolled<TileShape::width>([&](auto p) REIGEN_INLINE_LAMBDA {
            T* const c = job.c.data + i * job.c.row_stride + p * lanes<T>;
            store<T>(c, updated<T>(tile(i, p), job.alpha, job.beta, [&]() REIGEN_INLINE_LAMBDA { return load<T>(c); }));
        });
    });
}

/// C is fetched while its sums are computed: 2% faster at 2048^3 and 2048x256x1024, no difference seen up to 1024^3.
/// Only the largest tile has code of its own to store from registers: with all of them a user's file took 4.0 s to
/// compile instead of 2.6.
template <class T, int Height, int Width>
void update_tile(const TileUpdate<T>& job) {
    const Strided<T> c = job.c;
    if (c.col_stride == 1)
        for (Index i = 0; i < Height; ++i)
            for (Index p = 0; p < Width; ++p)
                prefetch_to_write(&c(i, p * lanes<T>));
    Tile<T, Height, Width> tile = multiply_tile<T, Height, Width>(job.depth, job.a, job.b);
    if constexpr (Height == TileShape::height && Width == TileShape::width)
        if (c.col_stride == 1 && c.cols == Width * lanes<T>)
            return update_from_registers(tile, job);
    T sums[Height * Width * lanes<T>];
    unrolled<Height * Width>([&](auto i) REIGEN_INLINE_LAMBDA { store<T>(sums + i * lanes<T>, tile.sum[i]); });
    update_from_memory(sums, Width, job.alpha, job.beta, c);
}

/// update_tile for every shape up to the largest: kernel(height, width).
template <class T>
class TileKernels {
  public:
    using Kernel = void (*)(const TileUpdate<T>&);

    static Kernel kernel(Index height, Index width) { return table[(height - 1) * TileShape::width + width - 1]; }

  private:
    template <class Shapes>
    struct Table;
    template <int... Shape>
    struct Table<std::integer_sequence<int, Shape...>> {
        static constexpr Kernel kernels[] = {
            update_tile<T, Shape / TileShape::width + 1, Shape % TileShape::width + 1>...};
    };

    static constexpr const Kernel* table =
        Table<std::make_integer_sequence<int, TileShape::height * TileShape::width>>::kernels;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
