#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/gemm_k_block.hpp>
#include <reigen/kernel/microkernel.hpp>
#include <reigen/kernel/prefetch.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
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

    /// How many of the rows that are left the next tile takes: below the full height an even number of them, or one:
    /// code for every height is long to compile.
    static constexpr Index next_height(Index rows) { return rows >= height ? height : rows > 1 ? rows / 2 * 2 : 1; }

    /// How many packets of columns: all tiles but the last two are full, those two share evenly.
    static constexpr Index next_width(Index packets) {
        return packets <= width ? packets : packets < 2 * width ? (packets + 1) / 2 : width;
    }
};

/// C = alpha A B + beta C on a tile, over some k-blocks. B may be stored in a narrower type.
template <class M, class Stored = M>
struct TileUpdate {
    using T = SumOf<M>;

    Index depth; // in multiplicands
    LeftPanel<M> a;
    RightPanel<Stored> b;
    T alpha;
    T beta;
    Strided<T> c; // of the tile; its last packet may have fewer columns than lanes
};

/// alpha sum + before, the same arithmetic for every element of every tile.
template <class T>
REIGEN_INLINE Packet<T> added(const Packet<T>& sum, T alpha, const Packet<T>& before) {
    return alpha == T(1) ? Eigen::internal::padd(sum, before) : multiply_add<T>(broadcast<T>(alpha), sum, before);
}

/// What a sum is added to before the first: beta c, or a zero that changes no bit. c is not looked at where beta is 0.
template <class T, class LoadC>
REIGEN_INLINE Packet<T> start_from(T beta, LoadC load_c) {
    if (beta == T(0))
        return broadcast<T>(T(-0.0));
    return beta == T(1) ? load_c() : Eigen::internal::pmul(broadcast<T>(beta), load_c());
}

/// to = alpha sums + beta from, on a tile of any shape whose sums are in memory: also where `from` or `to`, which may be
/// the same, has gaps between its columns, or fewer of them.
template <class T, class From, class To>
void update_from_memory(const T* sums, Index packets, T alpha, T beta, Strided<From> from, Strided<To> to) {
    for (Index i = 0; i < to.rows; ++i)
        for (Index p = 0; p < packets; ++p, sums += lanes<T>) {
            const int count = int(std::min<Index>(lanes<T>, to.cols - p * lanes<T>));
            const auto whole = [count](Index stride) { return stride == 1 && count == lanes<T>; };
            const Packet<T> before = start_from<T>(beta, [&]() REIGEN_INLINE_LAMBDA {
                const From* const c = &from(i, p * lanes<T>);
                return whole(from.col_stride) ? load<T>(c) : load_some<T>(c, from.col_stride, count);
            });
            const Packet<T> result = added<T>(load<T>(sums), alpha, before);
            To* const c = &to(i, p * lanes<T>);
            if (whole(to.col_stride))
                store<T>(c, result);
            else
                store_some<T>(c, to.col_stride, count, result);
        }
}

/// Rows of whole packets: of C, or of a copy of it.
template <class T>
struct PacketRows {
    T* data;
    Index stride;

    T* at(Index i, Index p) const { return data + i * stride + p * lanes<T>; }
};

/// to = alpha sums + from
template <class T, int Height, int Width>
REIGEN_INLINE void add_tile(Tile<T, Height, Width> tile, T alpha, PacketRows<const T> from, PacketRows<T> to) {
    unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA {
        unrolled<Width>([&](auto p) REIGEN_INLINE_LAMBDA {
            store<T>(to.at(i, p), added<T>(tile(i, p), alpha, load<T>(from.at(i, p))));
        });
    });
}

/// A tile of C on its way through the k-blocks: a copy in the first-level cache, except that the first block may read
/// C itself, and the last one write it. With a branch of code for each of these cases g++ 12 spills the sums.
template <class T, int Height, int Width>
class RunningTile {
  public:
    RunningTile(T beta, Strided<T> c) : c_(c), whole_(c.col_stride == 1 && c.cols == Width * lanes<T>) {
        if (beta == T(0))
            from_ = {zeros, 0};
        else if (whole_ && beta == T(1))
            from_ = {c.data, c.row_stride};
        else
            from_ = copy_of(beta);
    }

    REIGEN_INLINE void add(Tile<T, Height, Width> tile, T alpha, bool last) {
        const bool to_c = last && whole_;
        add_tile(tile, alpha, from_, to_c ? PacketRows<T>{c_.data, c_.row_stride} : PacketRows<T>{copy_, row});
        from_ = {copy_, row};
        if (last && !whole_)
            for (Index i = 0; i < Height; ++i)
                for (Index j = 0; j < c_.cols; ++j)
                    c_(i, j) = copy_[i * row + j];
    }

  private:
    static constexpr Index row = Width * lanes<T>;
    static constexpr auto zeros_array = [] {
        std::array<T, row> all{};
        all.fill(T(-0.0));
        return all;
    }();
    static constexpr const T* zeros = zeros_array.data();

    PacketRows<const T> copy_of(T beta) {
        std::fill_n(copy_, Height * row, T(0));
        for (Index i = 0; i < Height; ++i)
            for (Index j = 0; j < c_.cols; ++j)
                copy_[i * row + j] = beta * c_(i, j);
        return {copy_, row};
    }

    Strided<T> c_;
    bool whole_;
    PacketRows<const T> from_;
    alignas(cache_line) T copy_[Height * row];
};

/// The same, but C is read and written with every block, by way of memory.
template <class T, int Height, int Width>
class VisitedTile {
  public:
    VisitedTile(T beta, Strided<T> c) : beta_(beta), c_(c) {}

    REIGEN_INLINE void add(Tile<T, Height, Width> tile, T alpha, bool) {
        alignas(cache_line) T sums[Height * Width * lanes<T>];
        unrolled<Height * Width>([&](auto n) REIGEN_INLINE_LAMBDA { store<T>(sums + n * lanes<T>, tile.sum[n]); });
        update_from_memory(sums, Width, alpha, std::exchange(beta_, T(1)), c_, c_);
    }

  private:
    T beta_;
    Strided<T> c_;
};

/// The update, k-block after k-block; each_step is called with the place in B before every k. Between them a tile may stay
/// in the first-level cache, for which it needs code of its own: with it for all shapes a user's file took 22.5 s to
/// compile instead of 20.8.
template <int Height, int Width, bool Stays, class M, class Stored, class EachStep = NoAction>
REIGEN_INLINE void update_by_blocks(const TileUpdate<M, Stored>& job, EachStep each_step = {}) {
    using T = SumOf<M>;
    constexpr Index block = gemm_k_block<T>;
    std::conditional_t<Stays, RunningTile<T, Height, Width>, VisitedTile<T, Height, Width>> running(job.beta, job.c);
    for (Index k = 0; k < job.depth; k += block) {
        const Index depth = std::min(block, job.depth - k);
        running.add(multiply_tile<M, Height, Width>(depth, job.a.from_step(k), job.b.from_step(k), each_step),
                    job.alpha, k + depth == job.depth);
    }
}

/// C is fetched while its sums are computed: 2% faster at 2048^3 and 2048x256x1024, no difference seen up to 1024^3.
template <class M, int Height, int Width>
void update_tile(const TileUpdate<M>& job) {
    constexpr Index width = lanes<SumOf<M>>;
    if (job.c.col_stride == 1)
        for (Index i = 0; i < Height; ++i)
            for (Index p = 0; p < Width; ++p)
                prefetch_to_write(&job.c(i, p * width));
    update_by_blocks<Height, Width, Height == TileShape::height && Width == TileShape::width>(job);
}

/// update_tile for every shape that a tile can have: kernel(height, width).
template <class M>
class TileKernels {
  public:
    using Kernel = void (*)(const TileUpdate<M>&);

    static Kernel kernel(Index height, Index width) { return table[(height - 1) * TileShape::width + width - 1]; }

  private:
    template <int Height, int Width>
    static constexpr Kernel kernel_of() {
        if constexpr (TileShape::next_height(Height) == Height)
            return update_tile<M, Height, Width>;
        else
            return nullptr;
    }

    template <class Shapes>
    struct Table;
    template <int... Shape>
    struct Table<std::integer_sequence<int, Shape...>> {
        static constexpr Kernel kernels[] = {
            kernel_of<Shape / TileShape::width + 1, Shape % TileShape::width + 1>()...};
    };

    static constexpr const Kernel* table =
        Table<std::make_integer_sequence<int, TileShape::height * TileShape::width>>::kernels;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
