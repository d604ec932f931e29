#pragma once

#include <reigen/kernel/attention_tile.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Steps of the backward on one panel of queries and one tile of keys. P and dS are [keys][panel_rows].

/// One panel as the backward reads it: rows [panel_rows][padded(features)] for sums over queries, and the same
/// transposed, [features][panel_rows], for sums over features.
template <class T>
struct PanelRows {
    T* rows;
    T* columns;
    bool finite; // all of them
};

/// Copies rows, multiplied by a scale, into panel.rows, filled up with zeros.
template <class T, class RowAt>
void pack_rows(Index rows, Index features, T scale, RowAt row, PanelRows<T>& panel) {
    const Index width = padded<T>(features);
    for (Index i = 0; i < rows; ++i) {
        T* const to = panel.rows + i * width;
        for (Index c = 0; c < features; ++c)
            to[c] = scale * T(row(i)[c]);
        std::fill(to + features, to + width, T(0));
    }
    panel.finite = all_finite<T>(rows, width, {panel.rows, width, 1});
}

/// The packed rows transposed and multiplied by a further scale.
template <class T>
void transpose_rows(Index rows, Index features, T scale, const PanelRows<T>& panel) {
    pack_transposed(
        rows, features, scale, [&](Index i) { return panel.rows + i * padded<T>(features); }, panel.columns);
}

/// P = 2^(K Q^T - lse)
template <class T>
void weigh_tile(Index depth, LeftPanel<T> k, Index keys, const T* queries, const T* lse, T* weights) {
    multiply_strips<T, panel_packets>(
        keys, depth, k, panel_factor<T>(queries), [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                constexpr int p = n % panel_packets;
                const Packet<T> exponent = Eigen::internal::psub(tile.sum[n], load<T>(lse + p * lanes<T>));
                store<T>(weights + (first + n / panel_packets) * panel_rows<T> + p * lanes<T>, exp2<T>(exponent));
            });
        });
}

/// dS = P o (V dO^T - shift)
template <class T>
void differentiate_tile(Index depth, LeftPanel<T> v, Index keys, const T* dout, const T* shift, const T* weights,
                        T* dscores) {
    using Eigen::internal::pmul, Eigen::internal::psub;
    multiply_strips<T, panel_packets>(
        keys, depth, v, panel_factor<T>(dout), [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                constexpr int p = n % panel_packets;
                const Index at = (first + n / panel_packets) * panel_rows<T> + p * lanes<T>;
                const Packet<T> dweight = psub(tile.sum[n], load<T>(shift + p * lanes<T>));
                store<T>(dscores + at, pmul(load<T>(weights + at), dweight));
            });
        });
}

/// Takes what is not seen for 0, by selection: whatever stood there is gone.
template <class T>
void hide_weights(Index keys, const T* seen, T* weights) {
    const Packet<T> zero = broadcast<T>(0);
    for (Index at = 0; at < keys * panel_rows<T>; at += lanes<T>)
        store<T>(weights + at, select_equal<T>(load<T>(seen + at), zero, zero, load<T>(weights + at)));
}

/// dQ^T += K^T dS; `seen` is null where no key can spread a NaN.
template <class T>
void gather_keys(Index depth, LeftPanel<T> k, Index keys, const T* dscores, const T* seen, T* dqueries) {
    multiply_weights<T>(
        depth, keys, transposed(k), dscores, seen, [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                T* const at = dqueries + (first + n / panel_packets) * panel_rows<T> + n % panel_packets * lanes<T>;
                store<T>(at, Eigen::internal::padd(load<T>(at), tile.sum[n]));
            });
        });
}

/// The widest strip of features that leaves registers for six keys.
inline constexpr int widest_strip = packet_registers == 32 ? 4 : 3;

/// sums += W R over `Width` packets of features, W being [keys][panel_rows] and R [rows][width].
template <class T, int Width>
void add_strip_of_rows(Index keys, Index rows, const T* weights, const T* values, T* sums, Index width) {
    const LeftPanel<T> left = {weights, panel_rows<T>, 1};
    const RightPanel<T> right = {values, lanes<T>, width};
    multiply_strips<T, Width>(keys, rows, left, right, [&]<int Height>(Index first, Tile<T, Height, Width> tile) {
        unrolled<Height * Width>([&](auto n) REIGEN_INLINE_LAMBDA {
            T* const at = sums + (first + n / Width) * width + n % Width * lanes<T>;
            store<T>(at, Eigen::internal::padd(load<T>(at), tile.sum[n]));
        });
    });
}

/// The same one row at a time, leaving out what is not seen instead of multiplying it by 0.
template <class T>
void add_seen_rows(Index keys, Index rows, const T* weights, const T* seen, const T* values, T* sums, Index width) {
    for (Index k = 0; k < keys; ++k)
        for (Index c = 0; c < width; c += lanes<T>) {
            Packet<T> sum = broadcast<T>(0);
            for (Index i = 0; i < rows; ++i)
                if (seen[k * panel_rows<T> + i] != T(0))
                    sum = multiply_add<T>(broadcast<T>(weights[k * panel_rows<T> + i]), load<T>(values + i * width + c),
                                          sum);
            T* const at = sums + k * width + c;
            store<T>(at, Eigen::internal::padd(load<T>(at), sum));
        }
}

/// sums += W R: dV += P dO and dK += dS Q; `seen` is null where no row can spread a NaN.
template <class T>
void add_rows(Index keys, Index rows, const T* weights, const T* seen, const T* values, T* sums, Index width) {
    if (seen != nullptr)
        return add_seen_rows<T>(keys, rows, weights, seen, values, sums, width);
    const Index packets = width / lanes<T>;
    for (Index p = 0; p < packets;) {
        const Index left = packets - p;
        const Index strip = left <= widest_strip ? left : left < 2 * widest_strip ? (left + 1) / 2 : widest_strip;
        const T* const from = values + p * lanes<T>;
        T* const to = sums + p * lanes<T>;
        if (strip == 1)
            add_strip_of_rows<T, 1>(keys, rows, weights, from, to, width);
        else if (strip == 2)
            add_strip_of_rows<T, 2>(keys, rows, weights, from, to, width);
        else if (strip == 3)
            add_strip_of_rows<T, 3>(keys, rows, weights, from, to, width);
        else
            add_strip_of_rows<T, widest_strip>(keys, rows, weights, from, to, width);
        p += strip;
    }
}

/// sum of a_c b_c over contiguous elements.
template <class T, class From>
T dot(const From* a, const From* b, Index count) {
    Packet<T> sum = broadcast<T>(0);
    Index c = 0;
    for (; c + lanes<T> <= count; c += lanes<T>)
        sum = multiply_add<T>(load<T>(a + c), load<T>(b + c), sum);
    const Packet<T> rest =
        Eigen::internal::pmul(load_some<T>(a + c, 1, int(count - c)), load_some<T>(b + c, 1, int(count - c)));
    return sum_of<T>(Eigen::internal::padd(sum, rest));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
