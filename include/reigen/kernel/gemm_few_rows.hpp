#pragma once

#include <reigen/kernel/gemm_k_block.hpp>
#include <reigen/kernel/poll_clock.hpp>
#include <reigen/kernel/prefetch.hpp>
#include <reigen/kernel/tile_update.hpp>

#include <algorithm>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// A product of few rows with a right factor that lies row after row. It does little with every element of that factor,
// so what counts is to read it as memory likes to be read: a few whole rows side by side, into sums that stay in the
// first-level cache. Tiles of sums in registers would read a cache line of a row and go on to the next, a page further.

template <class T>
struct FewRows {
    /// Rows of sums that one pass adds to.
    static constexpr int height = 4;
    /// Rows of the right factor that it reads: each is a stream. One row of sums leaves registers for more.
    template <int Height>
    static constexpr int depth = Height == 1 ? 8 : 4;
    /// Up to here products are computed so. Against packing the right factor, on a busy Zen 3 core: 1.3 to 1.4 times
    /// as fast at 8 rows, 1.2 at 16, no difference seen at 24.
    static constexpr Index rows = 16;
    /// Sums at a time, and of them in a row: 64 and 16 KB in float.
    static constexpr Index sums = Index(1) << 14;
    static constexpr Index longest = Index(1) << 12;
    /// Memory for them, with a packet between two rows.
    static constexpr Index room = sums + rows * lanes<T>;
};

/// The sums of a few rows over the columns of a k-block. Rows are an odd number of packets apart: a power of two, and
/// they share a set of the first-level cache with each other and with rows of the right factor. On Zen 4 products of 8
/// and 16 rows with 4096x4096 are 1.2 to 2.3 times as fast so, 16 rows with 1024x1024 1.6 to 2.6 times.
template <class T>
struct RowSums {
    T* data;
    Index packets; // in a row

    /// Packets that so many rows take.
    static constexpr Index taken(Index rows, Index packets) { return rows * (packets | 1); }

    RowSums from_row(Index i) const { return {at(i, 0), packets}; }
    T* at(Index i, Index packet) const { return data + (taken(i, packets) + packet) * lanes<T>; }
};

/// sums(i, p) += left(i, k) right(k, p) for the steps k = 0, ..., Depth - 1 in this order, packets [first, end).
template <class M, int Height, int Depth, class LoadRight>
REIGEN_INLINE void add_right_rows(const M (&left)[Height * Depth], LoadRight right, RowSums<SumOf<M>> sums, Index first,
                                  Index end) {
    using T = SumOf<M>;
    MultiplicandPacket<M> scalars[Height * Depth];
    unrolled<Height * Depth>([&](auto n) REIGEN_INLINE_LAMBDA { scalars[n] = broadcast_multiplicand<M>(left[n]); });
    for (Index p = first; p < end; ++p) {
        MultiplicandPacket<M> rows[Depth];
        unrolled<Depth>([&](auto k) REIGEN_INLINE_LAMBDA { rows[k] = right(k, p); });
        unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA {
            Packet<T> sum = load<T>(sums.at(i, p));
            unrolled<Depth>([&](auto k)
                                REIGEN_INLINE_LAMBDA { sum = multiply_add<T>(scalars[i * Depth + k], rows[k], sum); });
            store<T>(sums.at(i, p), sum);
        });
    }
}

/// sums += the rows of A times Depth steps of B, the next ones on their way. Columns that fill no packet are loaded with
/// zeros behind them.
///
/// Fetching ahead makes products of 4 and 8 rows with 4096x4096 1.5 times as fast on a busy Zen 3 core.
template <class M, int Height, int Depth, class From>
void add_right_rows(Strided<const From> a, Strided<const From> b, RowSums<SumOf<M>> sums) {
    constexpr Index L = lanes<SumOf<M>>;
    M left[Height * Depth];
    for (int n = 0; n < Height * Depth; ++n)
        left[n] = multiplicand<M>(a.transpose(), n % Depth, n / Depth);
    const Index whole = b.cols / L;
    const auto load_whole = [&](Index k, Index p) REIGEN_INLINE_LAMBDA {
        unrolled<k_in<M>>([&](auto row) REIGEN_INLINE_LAMBDA {
            prefetch(b.data + ((k + Depth) * k_in<M> + row) * b.row_stride + p * L);
        });
        return load_step<M>(b, k, p * L);
    };
    const auto load_rest = [&](Index k, Index p) REIGEN_INLINE_LAMBDA {
        M rest[L] = {};
        for (Index j = p * L; j < b.cols; ++j)
            rest[j - p * L] = multiplicand<M>(b, k, j);
        return load_multiplicands<M>(rest);
    };
    add_right_rows<M, Height, Depth>(left, load_whole, sums, 0, whole);
    if (whole * L < b.cols)
        add_right_rows<M, Height, Depth>(left, load_rest, sums, whole, whole + 1);
}

/// sums += A B for Height rows, k ascending.
template <class M, int Height, class From>
void add_right_rows(Strided<const From> a, Strided<const From> b, RowSums<SumOf<M>> sums) {
    constexpr int depth = FewRows<SumOf<M>>::template depth<Height>;
    const auto add = [&]<int Depth>(Index k) {
        const Index count = std::min(Depth * k_in<M>, a.cols - k);
        add_right_rows<M, Height, Depth>(a.block(0, k, Height, count), b.block(k, 0, count, b.cols), sums);
    };
    Index k = 0;
    for (; k + depth * k_in<M> <= a.cols; k += depth * k_in<M>)
        add.template operator()<depth>(k);
    for (; k < a.cols; k += k_in<M>)
        add.template operator()<1>(k);
}

/// The same for any number of rows up to FewRows::height.
template <class M, class From>
void add_right_rows(Strided<const From> a, Strided<const From> b, RowSums<SumOf<M>> sums) {
    static_assert(FewRows<SumOf<M>>::height == 4);
    switch (a.rows) {
    case 1:
        return add_right_rows<M, 1>(a, b, sums);
    case 2:
        return add_right_rows<M, 2>(a, b, sums);
    case 3:
        return add_right_rows<M, 3>(a, b, sums);
    default:
        return add_right_rows<M, 4>(a, b, sums);
    }
}

/// The sums over one k-block: for each element a chain from zero with k ascending, as in every tile. All rows of sums
/// take a few rows of B while these are near.
template <class M, class From>
void sum_k_block(Strided<const From> a, Strided<const From> b, RowSums<SumOf<M>> sums) {
    constexpr Index rows_at_once = 8 * k_in<M>;
    std::fill_n(sums.data, sums.taken(a.rows, sums.packets) * lanes<SumOf<M>>, SumOf<M>(0));
    for (Index k = 0; k < a.cols; k += rows_at_once) {
        const Index depth = std::min(rows_at_once, a.cols - k);
        for (Index i = 0; i < a.rows; i += FewRows<SumOf<M>>::height)
            add_right_rows<M>(a.block(i, k, std::min<Index>(FewRows<SumOf<M>>::height, a.rows - i), depth),
                              b.block(k, 0, depth, b.cols), sums.from_row(i));
    }
}

/// C = alpha A B + beta C where the rows of B are contiguous, C in the type of the sums. `memory` has room for
/// FewRows::room.
template <class From, class T = Accumulator<From>>
void multiply_few_rows(T alpha, Strided<const From> a, Strided<const From> b, T beta, Strided<T> c, T* memory,
                       PollClock<T>& clock) {
    using M = Multiplicand<From>;
    const Index wide = std::min(FewRows<T>::longest, FewRows<T>::sums / c.rows / lanes<T> * lanes<T>);
    for (Index j = 0; j < c.cols; j += wide) {
        const Index columns = std::min(wide, c.cols - j);
        const RowSums<T> sums = {memory, packets_for<T>(columns)};
        for (Index k = 0; k < a.cols; k += gemm_k_block<From>) {
            const Index depth = std::min(gemm_k_block<From>, a.cols - k);
            sum_k_block<M>(a.block(0, k, a.rows, depth), b.block(k, j, depth, columns), sums);
            for (Index i = 0; i < c.rows; ++i) {
                const Strided<T> row = c.block(i, j, 1, columns);
                update_from_memory(sums.at(i, 0), sums.packets, alpha, k == 0 ? beta : T(1), row, row);
            }
            clock.advance(std::max(c.rows, PollClock<T>::fewest_rows) * sums.packets * lanes<T> * depth);
        }
    }
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
