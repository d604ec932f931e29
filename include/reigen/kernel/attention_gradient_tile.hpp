#pragma once

#include <reigen/kernel/attention_tile.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Steps of the backward on one panel of queries and one tile of keys. P and dS are [keys][panel_rows].

/// One panel as the backward reads it, as steps along the rows, [steps][padded(features)], for sums over queries, and as
/// steps along the features, [steps][panel_rows], for sums over features.
template <class M>
struct PanelRows {
    M* rows;
    M* columns;
    bool finite; // all of them
};

/// Copies rows, which scale multiplies where they are not pairs, into panel.rows, filled up with zeros.
template <class M, class RowAt>
void pack_rows(Index rows, Index features, [[maybe_unused]] SumOf<M> scale, RowAt row, PanelRows<M>& panel) {
    const Index width = padded<SumOf<M>>(features);
    const Index steps = steps_in<M>(rows);
    for (Index step = 0; step < steps; ++step) {
        M* const to = panel.rows + step * width;
        for (Index c = 0; c < features; ++c)
            if constexpr (k_in<M> == 1)
                to[c] = scale * M(row(step)[c]);
            else
                to[c] = {row(2 * step)[c], 2 * step + 1 < rows ? row(2 * step + 1)[c] : bfloat16(0)};
        std::fill(to + features, to + width, M{});
    }
    std::fill(panel.rows + steps * width, panel.rows + whole_steps<M>(steps) * width, M{});
    panel.finite = all_finite(steps, width, panel.rows, width);
}

/// P or dS of a tile as a factor of the two kinds of products: numbers lie there once, pairs in two ways.
template <class M>
struct WeightFactor {
    M* over_rows; // [keys][weight_steps]
    M* over_keys; // [steps along keys][panel_rows]
};

/// Steps of pairs along the rows of a panel, in whole tiles.
template <class M>
inline constexpr Index weight_steps = whole_steps<M>(panel_rows<SumOf<M>> / k_in<M>);

/// Zeros in both, also behind the steps that the rows of a panel take.
template <class M>
void clear_weights(const WeightFactor<M>& p_factor, const WeightFactor<M>& ds_factor) {
    std::fill_n(p_factor.over_rows, tile_keys * weight_steps<M>, M{});
    std::fill_n(ds_factor.over_rows, tile_keys * weight_steps<M>, M{});
}

template <int Height, class T>
using Strip = Packet<T>[Height * panel_packets];

/// Keeps a strip of keys, from `first` on, as a factor over the rows of the panel.
template <class M, int Height>
REIGEN_INLINE void keep_over_rows(Index first, const Strip<Height, SumOf<M>>& strip, M* to) {
    using T = SumOf<M>;
    unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
        constexpr Index key = n / panel_packets, row = n % panel_packets * lanes<T>;
        store_along_k<M>(to + (first + key) * weight_steps<M> + row / k_in<M>, strip[n]);
    });
}

/// Keeps it as one over the keys; `first` begins a step.
template <class M, int Height>
REIGEN_INLINE void keep_over_keys(Index first, const Strip<Height, SumOf<M>>& strip, M* to) {
    using T = SumOf<M>;
    constexpr int keys = int(k_in<M>);
    unrolled<(Height + keys - 1) / keys * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
        constexpr int step = n / panel_packets, p = n % panel_packets;
        Packet<T> numbers[keys];
        unrolled<keys>([&](auto k) REIGEN_INLINE_LAMBDA {
            if constexpr (step * keys + k < Height)
                numbers[k] = strip[(step * keys + k) * panel_packets + p];
            else
                numbers[k] = broadcast<T>(0);
        });
        store_multiplicands<M>(to + (first / keys + step) * panel_rows<T> + p * lanes<T>, step_of<M>(numbers));
    });
}

/// P = 2^(K Q^T - lse)
template <class M, class T = SumOf<M>>
void weigh_tile(Index depth, LeftPanel<M> k, Index keys, const M* queries, [[maybe_unused]] T scale, const T* lse,
                T* weights) {
    using Eigen::internal::pmul, Eigen::internal::psub;
    multiply_strips<M, panel_packets>(
        keys, depth, k, panel_factor<M>(queries), [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                constexpr int p = n % panel_packets;
                if constexpr (scales_scores<M>)
                    tile.sum[n] = pmul(tile.sum[n], broadcast<T>(scale));
                const Packet<T> exponent = psub(tile.sum[n], load<T>(lse + p * lanes<T>));
                store<T>(weights + (first + n / panel_packets) * panel_rows<T> + p * lanes<T>, exp2<T>(exponent));
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

/// dS = P o (V dO^T - shift), and P and dS as the factors that later products read; V dO^T of pairs is scaled first.
/// `seen` is null where every row sees every key.
template <class M, class T = SumOf<M>>
void differentiate_tile(Index depth, LeftPanel<M> v, Index keys, const M* dout, [[maybe_unused]] T scale,
                        const T* shift, const T* seen, const T* weights, WeightFactor<M> p_factor,
                        WeightFactor<M> ds_factor) {
    using Eigen::internal::pmul, Eigen::internal::psub;
    multiply_strips<M, panel_packets>(
        keys, depth, v, panel_factor<M>(dout), [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            Strip<Height, T> strip;
            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                constexpr int p = n % panel_packets;
                const Index at = (first + n / panel_packets) * panel_rows<T> + p * lanes<T>;
                if constexpr (scales_scores<M>)
                    tile.sum[n] = pmul(tile.sum[n], broadcast<T>(scale));
                strip[n] = pmul(load<T>(weights + at), psub(tile.sum[n], load<T>(shift + p * lanes<T>)));
                if (seen != nullptr)
                    strip[n] = select_equal<T>(load<T>(seen + at), broadcast<T>(0), broadcast<T>(0), strip[n]);
            });
            keep_over_keys<M, Height>(first, strip, ds_factor.over_keys);
            if constexpr (k_in<M> > 1) {
                keep_over_rows<M, Height>(first, strip, ds_factor.over_rows);
                unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                    strip[n] =
                        load<T>(weights + (first + n / panel_packets) * panel_rows<T> + n % panel_packets * lanes<T>);
                });
                keep_over_rows<M, Height>(first, strip, p_factor.over_rows);
            }
        });
    clear_rest_of_tile<M>(keys, ds_factor.over_keys);
}

/// Zeros in the place of rows that the panel does not have: what they would weigh is 0 or, under an infinite key, NaN.
template <class M>
void clear_missing_rows(Index keys, Index rows, M* over_rows) {
    static_assert(k_in<M> == 2);
    for (Index key = 0; key < keys; ++key, over_rows += weight_steps<M>) {
        if (rows % 2 != 0)
            over_rows[rows / 2].second = bfloat16(0);
        std::fill(over_rows + steps_in<M>(rows), over_rows + weight_steps<M>, M{});
    }
}

/// dQ^T += K^T dS; `seen` is null where no key can spread a NaN.
template <class M, class T = SumOf<M>>
void gather_keys(Index depth, LeftPanel<M> k, Index keys, const M* dscores, const T* seen, T* dqueries) {
    multiply_weights<M>(
        depth, keys, k, dscores, seen, [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                T* const at = dqueries + (first + n / panel_packets) * panel_rows<T> + n % panel_packets * lanes<T>;
                store<T>(at, Eigen::internal::padd(load<T>(at), tile.sum[n]));
            });
        });
}

/// The widest strip of features that leaves registers for six keys.
inline constexpr int widest_strip = packet_registers == 32 ? 4 : 3;

/// sums += W R over `Width` packets of features, W being [keys][steps along rows] and R [steps along rows][width].
template <class M, int Width, class T = SumOf<M>>
void add_strip_of_rows(Index keys, Index steps, const M* weights, const M* values, T* sums, Index width) {
    const LeftPanel<M> left = {weights, weight_steps<M>, 1};
    const RightPanel<M> right = {values, lanes<T>, width};
    multiply_strips<M, Width>(keys, steps, left, right, [&]<int Height>(Index first, Tile<T, Height, Width> tile) {
        unrolled<Height * Width>([&](auto n) REIGEN_INLINE_LAMBDA {
            T* const at = sums + (first + n / Width) * width + n % Width * lanes<T>;
            store<T>(at, Eigen::internal::padd(load<T>(at), tile.sum[n]));
        });
    });
}

/// The same one key at a time, leaving out what is not seen instead of multiplying it by 0.
template <class M, class T = SumOf<M>>
void add_seen_rows(Index keys, Index rows, const M* weights, const T* seen, const M* values, T* sums, Index width) {
    const auto masks_of = [&](Index key, Index row, Packet<T>(&masks)[k_in<M>]) REIGEN_INLINE_LAMBDA {
        for (Index i = 0; i < k_in<M>; ++i)
            masks[i] = broadcast<T>(row + i < rows ? seen[key * panel_rows<T> + row + i] : T(0));
    };
    for (Index key = 0; key < keys; ++key)
        for (Index c = 0; c < width; c += lanes<T>) {
            StepwiseSum<M> sum;
            for (Index step = 0; step < steps_in<M>(rows); ++step) {
                Packet<T> masks[k_in<M>];
                masks_of(key, step * k_in<M>, masks);
                const auto weight = broadcast_multiplicand<M>(weights[key * weight_steps<M> + step]);
                const auto value = load_multiplicands<M>(values + step * width + c);
                sum.add(weight, seen_part<M>(value, masks));
            }
            T* const at = sums + key * width + c;
            store<T>(at, Eigen::internal::padd(load<T>(at), sum.total()));
        }
}

/// sums += W R: dV += P dO and dK += dS Q; `seen` is null where no row can spread a NaN.
template <class M, class T = SumOf<M>>
void add_rows(Index keys, Index rows, const M* weights, const T* seen, const M* values, T* sums, Index width) {
    if (seen != nullptr)
        return add_seen_rows<M>(keys, rows, weights, seen, values, sums, width);
    const Index packets = width / lanes<T>;
    const Index steps = steps_in<M>(rows);
    for (Index p = 0; p < packets;) {
        const Index left = packets - p;
        const Index strip = left <= widest_strip ? left : left < 2 * widest_strip ? (left + 1) / 2 : widest_strip;
        const M* const from = values + p * lanes<T>;
        T* const to = sums + p * lanes<T>;
        if (strip == 1)
            add_strip_of_rows<M, 1>(keys, steps, weights, from, to, width);
        else if (strip == 2)
            add_strip_of_rows<M, 2>(keys, steps, weights, from, to, width);
        else if (strip == 3)
            add_strip_of_rows<M, 3>(keys, steps, weights, from, to, width);
        else
            add_strip_of_rows<M, widest_strip>(keys, steps, weights, from, to, width);
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
