#pragma once

#include <reigen/kernel/attention_tile.hpp>
#include <reigen/kernel/lane_sums.hpp>
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

/// The most query rows of a key head that are decoded: those of one panel, which has fewer than 8 where packets are
/// short. More of them fill enough lanes of a panel.
template <class T>
inline constexpr Index decoded_rows = std::min<Index>(8, panel_rows<T>);

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
    T* added;   // the same of one tile of keys

    DecodedRows(MemoryCutter<T>& cutter, Index count_, Index head_dim_, Index value_dim_)
        : count(count_),
          head_dim(head_dim_),
          value_dim(value_dim_),
          queries(cutter.take(count * padded<T>(head_dim))),
          weights(cutter.take(count * tile_keys)),
          max(cutter.take(padded<T>(count))),
          sum(cutter.take(padded<T>(count))),
          out(cutter.take(count * padded<T>(value_dim))),
          added(cutter.take(count * padded<T>(value_dim))) {}

    T* query(Index row) const { return queries + row * padded<T>(head_dim); }
    T* scores(Index row) const { return weights + row * tile_keys; }
    T* added_to(Index row) const { return added + row * padded<T>(value_dim); }
    T* output(Index row) const { return out + row * padded<T>(value_dim); }

    void take_queries(const T* panel) const {
        for (Index row = 0; row < count; ++row)
            take_column(panel + row, head_dim, query(row));
    }

    void take_state(const PanelState<T>& panel) const {
        take_numbers(panel.max, max);
        take_numbers(panel.sum, sum);
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
    void take_numbers(const T* panel, T* row) const {
        std::fill(std::copy_n(panel, count, row), row + padded<T>(count), T(0));
    }

    static void take_column(const T* panel, Index features, T* row) {
        for (Index c = 0; c < features; ++c)
            row[c] = panel[c * panel_rows<T>];
        std::fill(row + features, row + padded<T>(features), T(0));
    }
};

/// Keys that are multiplied at once, and the most query rows with them: as many packets of sums as hide how long a
/// multiply-add takes, with registers to spare for a packet of each key.
template <class T>
inline constexpr int decoded_keys = std::min(4, lanes<T>);
inline constexpr int decoded_rows_at_once = packet_registers == 32 ? 4 : 2;

/// Packets of the output that are summed at once: those of one row, or a few of some rows.
inline constexpr int decoded_outputs = packet_registers == 32 ? 16 : 8;

/// Values whose weighted sum is taken from zero and then added to that of their tile, which is added to the outputs: over
/// 32768 keys a chain through all of them would lose six times as much to rounding.
inline constexpr Index decoded_values = 32;

// Several query rows leave a core no time to run ahead of them by itself: all lines further on are asked for, evenly and
// in the order of memory. One row does, and reads row after row as the processor expects; but that ends with every page,
// and the first lines of rows further on carry it over. Cycles a Zen 4 takes for a key of 128 floats that it could read
// in 60 to 75: for 8 rows 90 to 110, without prefetching 150 to 190, into the first cache 120 to 200; for one row 65 to
// 75, without 80 to 90, with all lines 85 to 100.

/// Asks for `count` rows of keys or values that lie further on than the ones from `first` on, in so many steps.
template <class S>
GradualPrefetch prefetch_ahead(LeftPanel<S> rows, Index first, Index count, Index end, Index features, Index steps) {
    constexpr Index ahead = 32;
    const Index begin = std::min(first + ahead, end);
    return {Strided<const S>{rows.from_row(begin).data, std::min(count, end - begin), features, rows.row, 1}, steps};
}

/// Asks for the first two lines of one such row; of short ones, for two lines in four.
template <class S>
REIGEN_INLINE void prefetch_start(LeftPanel<S> rows, Index row, Index end, Index features) {
    constexpr Index ahead = 16;
    const Index bytes = features * Index(sizeof(S));
    if ((row * bytes & (4 * cache_line - 1)) >= bytes)
        return;
    const S* const start = rows.from_row(std::min(row + ahead, end - 1)).data;
    prefetch(start);
    prefetch(start + std::min(features - 1, cache_line / Index(sizeof(S))));
}

/// Calls step(first row, how many, a constant) until all rows are done, most of them first.
template <int Most, class Step>
REIGEN_INLINE void for_each_rows(Index rows, Step step, Index first = 0) {
    for (; first + Most <= rows; first += Most)
        step(first, std::integral_constant<int, Most>{});
    if constexpr (Most > 1)
        if (first < rows)
            for_each_rows<Most / 2>(rows, step, first);
}

/// The sums over features of q k for some rows and keys, side by side: each packet is loaded once. Missing keys are
/// taken to be the last one. Lanes are begun to be added up: `sums` gets a packet a row.
template <class T, int Rows, class S>
REIGEN_INLINE void multiply_features(Index width, const T* queries, LeftPanel<S> keys, Index count, T* sums,
                                     Index sums_of_row, GradualPrefetch& prefetch) {
    constexpr int Keys = decoded_keys<T>;
    Packet<T> sum[Rows * Keys];
    const S* key[Keys];
    unrolled<Rows * Keys>([&](auto n) REIGEN_INLINE_LAMBDA { sum[n] = broadcast<T>(0); });
    unrolled<Keys>([&](auto j) REIGEN_INLINE_LAMBDA { key[j] = keys.from_row(std::min<Index>(j, count - 1)).data; });
    for (Index c = 0; c < width; c += lanes<T>) {
        prefetch.step();
        Packet<T> features[Keys];
        unrolled<Keys>([&](auto j) REIGEN_INLINE_LAMBDA {
            features[j] = load<T>(key[j] + c);
            hold_in_register(features[j]);
        });
        unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA {
            Packet<T> query = load<T>(queries + r * width + c);
            hold_in_register(query);
            unrolled<Keys>([&](auto j) REIGEN_INLINE_LAMBDA {
                sum[r * Keys + j] = multiply_add<T>(query, features[j], sum[r * Keys + j]);
            });
        });
    }
    unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA {
        LaneSums<T>::template begin<Keys>(sum + r * Keys);
        store<T>(sums + r * sums_of_row, sum[r * Keys]);
    });
}

/// The same for one row, and one key after the other: in the order of memory.
template <class T, class S>
REIGEN_INLINE void multiply_features_of_row(Index width, const T* query, LeftPanel<S> keys, Index count, Index end,
                                            T* sums) {
    constexpr int Keys = decoded_keys<T>;
    constexpr int packets = 4; // in one step of a loop, of which there are then few enough to be predicted
    Packet<T> sum[Keys];
    unrolled<Keys>([&](auto j) REIGEN_INLINE_LAMBDA {
        const S* const key = keys.from_row(std::min<Index>(j, count - 1)).data;
        sum[j] = broadcast<T>(0);
        const auto add = [&](Index c) REIGEN_INLINE_LAMBDA {
            sum[j] = multiply_add<T>(load<T>(query + c), load<T>(key + c), sum[j]);
        };
        prefetch_start(keys, j, end, width);
        Index c = 0;
        for (; c + packets * lanes<T> <= width; c += packets * lanes<T>)
            unrolled<packets>([&](auto p) REIGEN_INLINE_LAMBDA { add(c + p * lanes<T>); });
        for (; c < width; c += lanes<T>)
            add(c);
    });
    LaneSums<T>::template begin<Keys>(sum);
    store<T>(sums, sum[0]);
}

/// S = Q K^T, -infinity behind the last key up to whole packets. `end` keys lie there in all.
template <class T, class S>
void score_rows(const DecodedRows<T>& rows, LeftPanel<S> keys, Index count, Index end) {
    constexpr int L = lanes<T>, Keys = decoded_keys<T>, parts = L / Keys;
    const Index width = padded<T>(rows.head_dim);
    const Index steps = parts * packets_for<T>(width) * ((rows.count - 1) / decoded_rows_at_once + 1);
    alignas(64) T sums[decoded_rows_at_once * parts * L] = {};
    for (Index first = 0; first < count; first += L) {
        const Index here = std::min<Index>(L, count - first);
        auto prefetch = prefetch_ahead(keys, first, rows.count == 1 ? 0 : here, end, width, steps);
        for_each_rows<decoded_rows_at_once>(rows.count, [&](Index row, auto some) REIGEN_INLINE_LAMBDA {
            for (Index part = 0; part * Keys < here; ++part) {
                const LeftPanel<S> some_keys = keys.from_row(first + part * Keys);
                if constexpr (some == 1)
                    multiply_features_of_row<T>(width, rows.query(row), some_keys, here - part * Keys,
                                                end - first - part * Keys, sums + part * L);
                else
                    multiply_features<T, some>(width, rows.query(row), some_keys, here - part * Keys, sums + part * L,
                                               parts * L, prefetch);
            }
            for (Index r = 0; r < some; ++r) {
                Packet<T> packets[parts];
                unrolled<parts>([&](auto p) REIGEN_INLINE_LAMBDA { packets[p] = load<T>(sums + (r * parts + p) * L); });
                T* const scores = rows.scores(row + r) + first;
                store<T>(scores, LaneSums<T>::template finish<Keys>(packets));
                std::fill(scores + here, scores + L, minus_infinity<T>);
            }
        });
    }
}

/// The largest of some scores and `before`.
template <class T>
T largest_score(const T* scores, Index keys, T before) {
    Packet<T> most = broadcast<T>(before);
    for (Index k = 0; k < keys; k += lanes<T>)
        most = larger<T>(load<T>(scores + k), most);
    return max_of_lanes(Lanes<T>{most});
}

/// Weights 2^(score - base) in place of scores; gives their sum.
template <class T>
T weigh_row(T* scores, Index keys, T base) {
    Packet<T> sum = broadcast<T>(0);
    for (Index k = 0; k < keys; k += lanes<T>) {
        const Packet<T> weight = exp2<T>(Eigen::internal::psub(load<T>(scores + k), broadcast<T>(base)));
        store<T>(scores + k, weight);
        sum = Eigen::internal::padd(sum, weight);
    }
    return sum_of_lanes(Lanes<T>{sum});
}

/// P = 2^(S - max) in place of S, with maxima and sums of the rows brought up to date, and outputs decayed. Row after
/// row in each step, since they do not wait for each other.
template <class T>
void weigh_rows(const DecodedRows<T>& rows, Index keys) {
    using Eigen::internal::psub;
    constexpr Index most_rows = padded<T>(decoded_rows<T>);
    alignas(64) T largest[most_rows] = {}, base[most_rows], decay[most_rows], sum[most_rows] = {};
    for (Index row = 0; row < rows.count; ++row)
        largest[row] = largest_score(rows.scores(row), keys, rows.max[row]);
    for (Index row = 0; row < rows.count; row += lanes<T>) {
        const Packet<T> now = load<T>(largest + row);
        const Packet<T> nothing = broadcast<T>(minus_infinity<T>);
        const Packet<T> from = select_equal<T>(now, nothing, broadcast<T>(0), now); // (-inf) - (-inf) is never taken
        store<T>(base + row, from);
        store<T>(decay + row, exp2<T>(psub(load<T>(rows.max + row), from)));
        store<T>(rows.max + row, now);
    }
    for (Index row = 0; row < rows.count; ++row)
        sum[row] = weigh_row(rows.scores(row), keys, base[row]);
    for (Index row = 0; row < rows.count; row += lanes<T>)
        store<T>(rows.sum + row, multiply_add<T>(load<T>(rows.sum + row), load<T>(decay + row), load<T>(sum + row)));
    for (Index row = 0; row < rows.count; ++row)
        if (decay[row] != T(1))
            for (Index c = 0; c < rows.value_dim; c += lanes<T>)
                store<T>(rows.output(row) + c,
                         Eigen::internal::pmul(load<T>(rows.output(row) + c), broadcast<T>(decay[row])));
}

/// Takes scores that are not seen for minus infinity, by selection: whatever stood there is gone.
template <class T>
void hide_scores(const DecodedRows<T>& rows, Index keys, const T* seen) {
    for (Index row = 0; row < rows.count; ++row)
        for (Index k = 0; k < keys; ++k)
            if (seen[k * panel_rows<T> + row] == T(0))
                rows.scores(row)[k] = minus_infinity<T>;
}

/// out += P V for some rows and packets of their outputs, the sum in the order of the keys. `each_key` is called before each.
template <class T, int Rows, int Packets, class S, class EachKey>
REIGEN_INLINE void add_values(Index keys, const T* weights, LeftPanel<S> values, Index width, T* out,
                              EachKey each_key) {
    const auto place = [&](int n) REIGEN_INLINE_LAMBDA { return out + n / Packets * width + n % Packets * lanes<T>; };
    Packet<T> sum[Rows * Packets];
    unrolled<Rows * Packets>([&](auto n) REIGEN_INLINE_LAMBDA { sum[n] = broadcast<T>(0); });
    for (Index k = 0; k < keys; ++k) {
        each_key(k);
        Packet<T> weight[Rows];
        unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA { weight[r] = broadcast<T>(weights[r * tile_keys + k]); });
        unrolled<Packets>([&](auto p) REIGEN_INLINE_LAMBDA {
            Packet<T> value = load<T>(values.data + k * values.row + p * lanes<T>);
            hold_in_register(value);
            unrolled<Rows>([&](auto r) REIGEN_INLINE_LAMBDA {
                sum[r * Packets + p] = multiply_add<T>(weight[r], value, sum[r * Packets + p]);
            });
        });
    }
    unrolled<Rows * Packets>(
        [&](auto n) REIGEN_INLINE_LAMBDA { store<T>(place(n), Eigen::internal::padd(load<T>(place(n)), sum[n])); });
}

/// The same for all packets from feature c on: most of them first, then four, then one. With every power of two between
/// them a user's file took 0.5 s longer to compile.
template <class T, int Rows, int Packets = decoded_outputs / Rows, class S, class EachKey>
REIGEN_INLINE void add_values_of_rows(Index keys, const T* weights, LeftPanel<S> values, Index width, T* out,
                                      EachKey each_key, Index c = 0) {
    for (; c + Packets * lanes<T> <= width; c += Packets * lanes<T>)
        add_values<T, Rows, Packets>(keys, weights, LeftPanel<S>{values.data + c, values.row, 1}, width, out + c,
                                     each_key);
    if constexpr (Packets > 1)
        if (c < width)
            add_values_of_rows<T, Rows, (Packets > 4 ? 4 : 1)>(keys, weights, values, width, out, each_key, c);
}

/// P V of a tile; `end` values lie there in all.
template <class T, class S>
void multiply_values(const DecodedRows<T>& rows, LeftPanel<S> values, Index count, Index end) {
    const Index width = padded<T>(rows.value_dim);
    const Index steps_of_key = std::max<Index>(1, rows.count * packets_for<T>(width) / decoded_outputs);
    for (Index first = 0; first < count; first += decoded_values) {
        const Index here = std::min(decoded_values, count - first);
        if (rows.count == 1) {
            const auto start_next = [&](Index k)
                                        REIGEN_INLINE_LAMBDA { prefetch_start(values, first + k, end, width); };
            add_values_of_rows<T, 1>(here, rows.scores(0) + first, values.from_row(first), width, rows.added_to(0),
                                     start_next);
            continue;
        }
        auto prefetch = prefetch_ahead(values, first, here, end, width, here * steps_of_key);
        for_each_rows<decoded_rows_at_once>(rows.count, [&](Index row, auto some) REIGEN_INLINE_LAMBDA {
            add_values_of_rows<T, some>(here, rows.scores(row) + first, values.from_row(first), width,
                                        rows.added_to(row), [&](Index) REIGEN_INLINE_LAMBDA { prefetch.step(); });
        });
    }
}

/// The same, leaving out what is not seen instead of multiplying it by 0: a NaN there does not spread.
template <class T, class S>
void multiply_seen_values(const DecodedRows<T>& rows, LeftPanel<S> values, Index count, const T* seen) {
    const auto sum_of_seen = [&](Index row, Index c, Index first, Index end) {
        Packet<T> sum = broadcast<T>(0);
        for (Index k = first; k < end; ++k)
            if (seen[k * panel_rows<T> + row] != T(0))
                sum = multiply_add<T>(broadcast<T>(rows.scores(row)[k]), load<T>(values.from_row(k).data + c), sum);
        return sum;
    };
    for (Index row = 0; row < rows.count; ++row)
        for (Index c = 0; c < rows.value_dim; c += lanes<T>)
            for (Index first = 0; first < count; first += decoded_values) {
                T* const out = rows.added_to(row) + c;
                const Packet<T> sum = sum_of_seen(row, c, first, std::min(first + decoded_values, count));
                store<T>(out, Eigen::internal::padd(load<T>(out), sum));
            }
}

/// out += P V; `seen` is null where no value can spread a NaN.
template <class T, class S>
void gather_values(const DecodedRows<T>& rows, LeftPanel<S> values, Index count, Index end, const T* seen) {
    const Index size = rows.count * padded<T>(rows.value_dim);
    std::fill_n(rows.added, size, T(0));
    if (seen == nullptr)
        multiply_values(rows, values, count, end);
    else
        multiply_seen_values(rows, values, count, seen);
    for (Index c = 0; c < size; c += lanes<T>)
        store<T>(rows.out + c, Eigen::internal::padd(load<T>(rows.out + c), load<T>(rows.added + c)));
}

/// Rows of the keys of a tile and of their values, for decoding.
template <class T>
struct DecodedTile {
    LeftPanel<T> k; // [keys, head_dim]
    LeftPanel<T> v; // [keys, head_dim of V]
    Index keys;
};

/// The rows take in a tile of keys, of which `end` lie there one after the other; `seen` is null where all rows see all
/// of them, else [keys][panel_rows]. Rows of keys and values are whole packets; bfloat16 is widened where it is loaded.
///
/// Order       a row's bits do not depend on the other rows, nor on what they see
template <class T, class S>
void decode_tile(const DecodedRows<T>& rows, const DecodedTile<S>& tile, Index end, const T* seen) {
    score_rows(rows, tile.k, tile.keys, end);
    if (seen != nullptr)
        hide_scores(rows, tile.keys, seen);
    weigh_rows(rows, tile.keys);
    const bool spreads_nothing = seen == nullptr || all_finite(tile.keys, rows.value_dim, tile.v.data, tile.v.row);
    gather_values(rows, tile.v, tile.keys, end, spreads_nothing ? nullptr : seen);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
