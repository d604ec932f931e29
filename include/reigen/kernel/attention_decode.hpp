#pragma once

#include <reigen/kernel/attention_tile.hpp>
#include <reigen/kernel/lanes.hpp>
#include <reigen/kernel/memory_cutter.hpp>
#include <reigen/kernel/prefetch.hpp>

#include <algorithm>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Attention of few query rows, as when one token is generated after the other: all time goes into streaming keys and
// values from memory. Features are in the lanes, so that both are read by whole packets where they lie; with queries in
// the lanes most lanes would be idle.

/// The most query rows of a key head that are decoded. More of them fill enough lanes of a panel.
inline constexpr Index decoded_rows = 8;

/// The queries of a panel with few rows and what they have absorbed, row by row, filled up with zeros to whole packets.
template <class T>
struct DecodedRows {
    Index count;
    Index head_dim, value_dim;
    T* queries; // [count][padded(head_dim)], scaled
    T* weights; // [count][tile_keys]
    T* max;     // [count]
    T* sum;     // [count]
    T* out;     // [count][padded(value_dim)]

    DecodedRows(MemoryCutter<T>& cutter, Index count_, Index head_dim_, Index value_dim_)
        : count(count_),
          head_dim(head_dim_),
          value_dim(value_dim_),
          queries(cutter.take(count * padded<T>(head_dim))),
          weights(cutter.take(count * tile_keys)),
          max(cutter.take(padded<T>(count))),
          sum(cutter.take(padded<T>(count))),
          out(cutter.take(count * padded<T>(value_dim))) {}

    T* query(Index row) const { return queries + row * padded<T>(head_dim); }
    T* scores(Index row) const { return weights + row * tile_keys; }
    T* output(Index row) const { return out + row * padded<T>(value_dim); }

    void take_queries(const T* panel) const {
        for (Index row = 0; row < count; ++row)
            take_column(panel + row, head_dim, query(row));
    }

    void take_state(const PanelState<T>& panel) const {
        std::copy_n(panel.max, count, max);
        std::copy_n(panel.sum, count, sum);
        for (Index row = 0; row < count; ++row)
            take_column(panel.out + row, value_dim, output(row));
    }

    void give_state(const PanelState<T>& panel) const {
        std::copy_n(max, count, panel.max);
        std::copy_n(sum, count, panel.sum);
        for (Index row = 0; row < count; ++row)
            for (Index c = 0; c < value_dim; ++c)
                panel.out[c * panel_rows<T> + row] = output(row)[c];
    }

  private:
    static void take_column(const T* panel, Index features, T* row) {
        for (Index c = 0; c < features; ++c)
            row[c] = panel[c * panel_rows<T>];
        std::fill(row + features, row + padded<T>(features), T(0));
    }
};

/// Keys whose rows are read side by side, each from its first feature to its last: four streams are about the fastest
/// way in which a core reads.
template <class T>
inline constexpr int decoded_keys = std::min(4, lanes<T>);

/// sums[row][key][lanes] = q k of a few rows and keys, features still to be added up over the lanes.
template <class T, int Keys, int Rows>
REIGEN_INLINE void multiply_features(Index width, const T* queries, LeftPanel<T> keys, T* sums) {
    Packet<T> sum[Rows * Keys];
    unrolled<Rows * Keys>([&](auto n) REIGEN_INLINE_LAMBDA { sum[n] = broadcast<T>(0); });
    for (Index c = 0; c < width; c += lanes<T>) {
        Packet<T> query[Rows];
        unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA {
            query[r] = load<T>(queries + r * width + c);
            hold_in_register(query[r]);
        });
        unrolled<Keys>([&](auto j) REIGEN_INLINE_LAMBDA {
            Packet<T> key = load<T>(keys.data + j * keys.row + c);
            hold_in_register(key);
            unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA {
                sum[r * Keys + j] = multiply_add<T>(query[r], key, sum[r * Keys + j]);
            });
        });
    }
    unrolled<Rows * Keys>(
        [&](auto n) REIGEN_INLINE_LAMBDA { store<T>(sums + (n / Keys * lanes<T> + n % Keys) * lanes<T>, sum[n]); });
}

/// out += P V for a few rows and keys, in the order of the keys.
template <class T, int Keys, int Rows>
REIGEN_INLINE void add_values(Index width, const T* weights, LeftPanel<T> values, T* out) {
    Packet<T> weight[Rows * Keys];
    unrolled<Rows * Keys>(
        [&](auto n) REIGEN_INLINE_LAMBDA { weight[n] = broadcast<T>(weights[n / Keys * tile_keys + n % Keys]); });
    for (Index c = 0; c < width; c += lanes<T>) {
        Packet<T> sum[Rows];
        unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA { sum[r] = load<T>(out + r * width + c); });
        unrolled<Keys>([&](auto j) REIGEN_INLINE_LAMBDA {
            Packet<T> value = load<T>(values.data + j * values.row + c);
            hold_in_register(value);
            unrolled<Rows>([&](auto r)
                               REIGEN_INLINE_LAMBDA { sum[r] = multiply_add<T>(weight[r * Keys + j], value, sum[r]); });
        });
        unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA { store<T>(out + r * width + c, sum[r]); });
    }
}

/// Calls step(first key, first row, how many keys, how many rows), the last two constants, until all are done: keys a
/// few at a time, the last ones one by one; rows in pairs, for which each packet of a key is read once.
template <class T, class Step>
REIGEN_INLINE void for_each_step(Index keys, Index rows, Step step) {
    const auto all_rows = [&](Index key, auto count) REIGEN_INLINE_LAMBDA {
        Index row = 0;
        for (; row + 2 <= rows; row += 2)
            step(key, row, count, std::integral_constant<int, 2>{});
        if (row < rows)
            step(key, row, count, std::integral_constant<int, 1>{});
    };
    Index key = 0;
    for (; key + decoded_keys<T> <= keys; key += decoded_keys<T>)
        all_rows(key, std::integral_constant<int, decoded_keys<T>>{});
    for (; key < keys; ++key)
        all_rows(key, std::integral_constant<int, 1>{});
}

/// Asks for some keys or values further on to be near: 16 rows ahead a Zen 3 decodes 1.05 to 1.5 times as fast as
/// without, 8 and 32 are within a tenth. Values of one tile read between the keys of the next were slower.
template <class T>
REIGEN_INLINE void prefetch_ahead(LeftPanel<T> rows, Index first, Index count, Index features, Index end) {
    constexpr Index ahead = 16;
    for (Index i = first + ahead; i < std::min(first + ahead + count, end); ++i)
        for (Index c = 0; c < features; c += cache_line / Index(sizeof(T)))
            __builtin_prefetch(rows.data + i * rows.row + c);
}

/// The sums of the lanes of as many packets.
template <class T>
REIGEN_INLINE Packet<T> sums_of_lanes(const T* packets) {
    constexpr int L = lanes<T>;
    Packet<T> sums[L];
    unrolled<L>([&](auto j) REIGEN_INLINE_LAMBDA { sums[j] = load<T>(packets + j * L); });
    transpose_packets<T>(sums);
    for (int half = L / 2; half > 0; half /= 2)
        for (int j = 0; j < half; ++j)
            sums[j] = Eigen::internal::padd(sums[j], sums[j + half]);
    return sums[0];
}

/// S = Q K^T, -infinity behind the last key up to whole packets. `end` keys lie there in all.
template <class T>
void score_rows(const DecodedRows<T>& rows, LeftPanel<T> keys, Index count, Index end) {
    constexpr Index L = lanes<T>;
    const Index width = padded<T>(rows.head_dim);
    alignas(64) T sums[decoded_rows * L * L] = {};
    for (Index first = 0; first < count; first += L) {
        const Index here = std::min(L, count - first);
        prefetch_ahead(keys, first, here, rows.head_dim, end);
        for_each_step<T>(here, rows.count, [&](Index key, Index row, auto of_keys, auto of_rows) REIGEN_INLINE_LAMBDA {
            multiply_features<T, of_keys, of_rows>(width, rows.query(row), keys.from_row(first + key),
                                                   sums + (row * L + key) * L);
        });
        for (Index row = 0; row < rows.count; ++row) {
            T* const scores = rows.scores(row) + first;
            store<T>(scores, sums_of_lanes<T>(sums + row * L * L));
            std::fill(scores + here, scores + L, minus_infinity<T>);
        }
    }
}

/// P = 2^(S - max) in place of S, with maximum and sum of the row brought up to date, and its output decayed.
template <class T>
void weigh_row(const DecodedRows<T>& rows, Index row, Index keys) {
    using Eigen::internal::padd, Eigen::internal::pmul, Eigen::internal::psub;
    T* const scores = rows.scores(row);
    Packet<T> most = broadcast<T>(rows.max[row]);
    for (Index k = 0; k < keys; k += lanes<T>)
        most = larger<T>(load<T>(scores + k), most);
    const T before = rows.max[row];
    const T now = max_of_lanes(Lanes<T>{most});
    const Packet<T> base = broadcast<T>(now == minus_infinity<T> ? T(0) : now); // (-inf) - (-inf) is never taken
    Packet<T> sum = broadcast<T>(0);
    for (Index k = 0; k < keys; k += lanes<T>) {
        const Packet<T> weight = exp2<T>(psub(load<T>(scores + k), base));
        store<T>(scores + k, weight);
        sum = padd(sum, weight);
    }
    const Packet<T> decay = exp2<T>(psub(broadcast<T>(before), base));
    T* const out = rows.output(row);
    for (Index c = 0; c < rows.value_dim; c += lanes<T>)
        store<T>(out + c, pmul(load<T>(out + c), decay));
    rows.max[row] = now;
    T totals[lanes<T>];
    store<T>(totals, multiply_add<T>(broadcast<T>(rows.sum[row]), decay, broadcast<T>(sum_of_lanes(Lanes<T>{sum}))));
    rows.sum[row] = totals[0];
}

/// Takes scores that are not seen for minus infinity, by selection: whatever stood there is gone.
template <class T>
void hide_scores(const DecodedRows<T>& rows, Index keys, const T* seen) {
    for (Index row = 0; row < rows.count; ++row)
        for (Index k = 0; k < keys; ++k)
            if (seen[k * panel_rows<T> + row] == T(0))
                rows.scores(row)[k] = minus_infinity<T>;
}

/// out += P V; `end` values lie there in all.
template <class T>
void gather_values(const DecodedRows<T>& rows, LeftPanel<T> values, Index count, Index end) {
    const Index width = padded<T>(rows.value_dim);
    for (Index first = 0; first < count; first += lanes<T>) {
        const Index here = std::min<Index>(lanes<T>, count - first);
        prefetch_ahead(values, first, here, rows.value_dim, end);
        for_each_step<T>(here, rows.count, [&](Index key, Index row, auto of_keys, auto of_rows) REIGEN_INLINE_LAMBDA {
            add_values<T, of_keys, of_rows>(width, rows.scores(row) + first + key, values.from_row(first + key),
                                            rows.output(row));
        });
    }
}

/// The same, leaving out what is not seen instead of multiplying it by 0: a NaN there does not spread.
template <class T>
void gather_seen_values(const DecodedRows<T>& rows, LeftPanel<T> values, Index count, const T* seen) {
    for (Index row = 0; row < rows.count; ++row)
        for (Index k = 0; k < count; ++k)
            if (seen[k * panel_rows<T> + row] != T(0))
                add_values<T, 1, 1>(padded<T>(rows.value_dim), rows.scores(row) + k, values.from_row(k),
                                    rows.output(row));
}

/// Rows of the keys of a tile and of their values, for decoding.
template <class T>
struct DecodedTile {
    LeftPanel<T> k; // [keys, head_dim]
    LeftPanel<T> v; // [keys, head_dim of V]
    Index keys;
};

/// The rows take in a tile of keys, of which `end` lie there one after the other; `seen` is null where all rows see all
/// of them, else [keys][panel_rows]. Rows of keys and values are whole packets.
///
/// Order       a row's bits do not depend on the other rows, nor on what they see
template <class T>
void decode_tile(const DecodedRows<T>& rows, const DecodedTile<T>& tile, Index end, const T* seen) {
    score_rows(rows, tile.k, tile.keys, end);
    if (seen != nullptr)
        hide_scores(rows, tile.keys, seen);
    for (Index row = 0; row < rows.count; ++row)
        weigh_row(rows, row, tile.keys);
    if (seen == nullptr || all_finite(tile.keys, rows.value_dim, tile.v.data, tile.v.row))
        gather_values(rows, tile.v, tile.keys, end);
    else
        gather_seen_values(rows, tile.v, tile.keys, seen);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
