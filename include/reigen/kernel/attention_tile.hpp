#pragma once

#include <reigen/kernel/attention_panel.hpp>
#include <reigen/kernel/exp.hpp>
#include <reigen/kernel/tile_mask.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// Steps of attention on one panel of queries and one tile of keys. S, P and dS are [keys][panel_rows]. M is what is
// multiplied: a number, or a pair of bfloat16 that are neighbours along what is summed over.

template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// What is multiplied with the rows of a panel: [steps][panel_rows].
template <class M>
RightPanel<M> panel_factor(const M* panel) {
    constexpr Index width = lanes<SumOf<M>>, rows = panel_rows<SumOf<M>>;
    return {panel, width, rows};
}

/// Whether scores are multiplied by the scale, and not the queries before: of pairs that would round them.
template <class M>
inline constexpr bool scales_scores = k_in<M> > 1;

/// Keys or values of a tile, as factors of the two kinds of products they enter. Numbers lie there once, rows of features;
/// pairs in two ways, of which a pass may have only the one it needs. Tiles want the second as rows too, of steps along
/// the keys.
template <class M>
struct KeyFactor {
    LeftPanel<M> over_features; // (key, step along features)
    LeftPanel<M> over_keys;     // (feature, step along keys)

    /// `first` begins a step.
    KeyFactor from_key(Index first) const {
        return {over_features.from_row(first), over_keys.from_step(first / k_in<M>)};
    }
};

/// The keys of a tile and what they carry.
template <class M>
struct KeyTile {
    KeyFactor<M> k;
    KeyFactor<M> v;
    Index keys = 0;

    KeyTile from_key(Index first, Index count) const { return {k.from_key(first), v.from_key(first), count}; }
};

/// Whether rows of contiguous elements, `stride` apart, are all finite.
template <class From>
bool all_finite(Index rows, Index cols, const From* data, Index stride) {
    using T = Accumulator<From>;
    constexpr Index chains = 4; // independent ones, since each waits for its own last sum
    Packet<T> sums[chains];     // of x 0, which is 0 for finite x and NaN for others
    unrolled<chains>([&](auto n) REIGEN_INLINE_LAMBDA { sums[n] = broadcast<T>(0); });
    T rest = 0;
    for (Index i = 0; i < rows; ++i) {
        const From* const row = data + i * stride;
        Index c = 0;
        for (; c + chains * lanes<T> <= cols; c += chains * lanes<T>)
            unrolled<chains>([&](auto n) REIGEN_INLINE_LAMBDA {
                sums[n] = multiply_add<T>(load<T>(row + c + n * lanes<T>), broadcast<T>(0), sums[n]);
            });
        for (; c + lanes<T> <= cols; c += lanes<T>)
            sums[0] = multiply_add<T>(load<T>(row + c), broadcast<T>(0), sums[0]);
        for (; c < cols; ++c)
            rest += T(row[c]) * T(0);
    }
    unrolled<chains - 1>([&](auto n) REIGEN_INLINE_LAMBDA { sums[0] = Eigen::internal::padd(sums[0], sums[n + 1]); });
    return sum_of<T>(sums[0]) + rest == T(0);
}

inline bool all_finite(Index rows, Index cols, const BFloat16Pair* data, Index stride) {
    constexpr std::uint16_t exponent = 0x7f80; // all its bits are set in infinities and NaNs alone
    std::uint16_t found = 0;
    for (Index i = 0; i < rows; ++i) {
        const auto* const row = reinterpret_cast<const std::byte*>(data + i * stride);
        for (Index c = 0; c < 2 * cols; ++c) {
            std::uint16_t bits;
            std::memcpy(&bits, row + 2 * c, sizeof bits);
            found |= std::uint16_t((bits & exponent) == exponent);
        }
    }
    return found == 0;
}

/// Whether a product over the keys can spread no NaN: of all of them that it looks at, which may be more than `keys`.
template <class M>
bool all_finite(Index keys, Index features, const KeyFactor<M>& factor) {
    const Index steps = whole_steps<M>(steps_in<M>(keys));
    if constexpr (in_tiles<M>)
        return all_finite(features, steps, factor.over_keys.data, factor.over_keys.row);
    else
        return all_finite(steps, features, factor.over_keys.data, factor.over_keys.step);
}

/// A sum over steps that are taken one by one, with the bits that multiply_strips gives it.
template <class M>
class StepwiseSum {
    using T = SumOf<M>;

  public:
    REIGEN_INLINE void add(const MultiplicandPacket<M>& a, const MultiplicandPacket<M>& b) {
        if constexpr (in_tiles<M>) {
            firsts_ = multiply_add<T>(first_of_pairs(a), first_of_pairs(b), firsts_);
            seconds_ = multiply_add<T>(second_of_pairs(a), second_of_pairs(b), seconds_);
            if (++steps_ % whole_steps<M>(1) == 0)
                end_group();
        } else {
            sum_ = multiply_add<T>(a, b, sum_);
        }
    }

    REIGEN_INLINE Packet<T> total() {
        if constexpr (in_tiles<M>)
            end_group();
        return sum_;
    }

  private:
    REIGEN_INLINE void end_group() {
        sum_ = Eigen::internal::padd(sum_, Eigen::internal::padd(firsts_, seconds_));
        firsts_ = seconds_ = broadcast<T>(0);
    }

    Packet<T> sum_ = broadcast<T>(0);
    Packet<T> firsts_ = broadcast<T>(0); // of a group of a tile's steps
    Packet<T> seconds_ = broadcast<T>(0);
    Index steps_ = 0;
};

/// What a lane of a panel sees of a step along keys; `seen` begins at the first of them.
template <class M>
REIGEN_INLINE MultiplicandPacket<M> seen_part(const M& step, const SumOf<M>* seen, Index keys) {
    using T = SumOf<M>;
    Packet<T> masks[k_in<M>];
    unrolled<k_in<M>>([&](auto k) REIGEN_INLINE_LAMBDA {
        masks[k] = k < keys ? load<T>(seen + k * panel_rows<T>) : broadcast<T>(0);
    });
    return seen_part<M>(broadcast_multiplicand<M>(step), masks);
}

/// sums(c, p) = sum over keys of left(c, key) * weight(key, p) in the order of the products, but leaving out what is
/// not seen instead of multiplying it by 0: a NaN there does not spread.
template <class M, class Finish>
void multiply_seen(Index rows, Index keys, LeftPanel<M> left, const M* weights, const SumOf<M>* seen, Finish finish) {
    using T = SumOf<M>;
    for (Index c = 0; c < rows; ++c) {
        Tile<T, 1, panel_packets> tile;
        unrolled<panel_packets>([&](auto p) REIGEN_INLINE_LAMBDA {
            StepwiseSum<M> sum;
            for (Index step = 0; step < steps_in<M>(keys); ++step) {
                const Index first = step * k_in<M>, lane = p * lanes<T>;
                const auto a = seen_part<M>(left.data[c * left.row + step * left.step],
                                            seen + first * panel_rows<T> + lane, keys - first);
                const auto weight = load_multiplicands<M>(weights + step * panel_rows<T> + lane);
                sum.add(a, weight);
            }
            tile(0, p) = sum.total();
        });
        finish(c, tile);
    }
}

/// Products of V^T or K^T with weights of keys; `seen` is null where every weight may be multiplied.
template <class M, class Finish>
REIGEN_INLINE void multiply_weights(Index rows, Index keys, LeftPanel<M> left, const M* weights, const SumOf<M>* seen,
                                    Finish finish) {
    if (seen == nullptr)
        multiply_strips<M, panel_packets>(rows, steps_in<M>(keys), left, panel_factor<M>(weights), finish);
    else
        multiply_seen<M>(rows, keys, left, weights, seen, finish);
}

/// What the rows of a panel have absorbed so far: the largest score (an exponent of two), the sum of powers relative to
/// it, and the sum of values weighted by them, [head_dim of V][panel_rows].
template <class T>
struct PanelState {
    T* max;
    T* sum;
    T* out;
};

/// S = K Q^T and, for each row, the largest of its scores.
template <class M, class T = SumOf<M>>
void score_tile(Index depth, LeftPanel<M> k, Index keys, const M* queries, [[maybe_unused]] T scale, T* scores,
                T* largest) {
    std::fill_n(largest, panel_rows<T>, minus_infinity<T>);
    multiply_strips<M, panel_packets>(
        keys, depth, k, panel_factor<M>(queries), [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
            unrolled<panel_packets>([&](auto p) REIGEN_INLINE_LAMBDA {
                Packet<T> most = load<T>(largest + p * lanes<T>);
                unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA {
                    if constexpr (scales_scores<M>)
                        tile(i, p) = Eigen::internal::pmul(tile(i, p), broadcast<T>(scale));
                    most = larger<T>(tile(i, p), most);
                    store<T>(scores + (first + i) * panel_rows<T> + p * lanes<T>, tile(i, p));
                });
                store<T>(largest + p * lanes<T>, most);
            });
        });
}

/// Takes scores that are not seen for minus infinity, by selection: whatever stood there is gone.
template <class T>
void hide_scores(Index keys, const T* seen, T* scores, T* largest) {
    unrolled<panel_packets>([&](auto p) REIGEN_INLINE_LAMBDA {
        Packet<T> most = broadcast<T>(minus_infinity<T>);
        for (Index k = 0; k < keys; ++k) {
            const Index at = k * panel_rows<T> + p * lanes<T>;
            const Packet<T> hidden = broadcast<T>(minus_infinity<T>);
            const Packet<T> score = select_equal<T>(load<T>(seen + at), broadcast<T>(0), hidden, load<T>(scores + at));
            most = larger<T>(score, most);
            store<T>(scores + at, score);
        }
        store<T>(largest + p * lanes<T>, most);
    });
}

/// Where weights stand that take the place of scores.
template <class M>
M* weights_in(SumOf<M>* scores) {
    return reinterpret_cast<M*>(scores);
}

/// Fills up weights of so many keys with zeros to whole tiles.
template <class M>
void clear_rest_of_tile(Index keys, M* weights) {
    const Index steps = steps_in<M>(keys);
    std::fill(weights + steps * panel_rows<SumOf<M>>, weights + whole_steps<M>(steps) * panel_rows<SumOf<M>>, M{});
}

/// P = 2^(S - max) in place of S, as steps along keys, with maximum and sum of the rows brought up to date; `decay` is
/// what earlier sums have to be multiplied by.
template <class M, class T = SumOf<M>>
void weigh_scores(Index keys, T* scores, const T* largest, PanelState<T> state, T* decay) {
    using Eigen::internal::psub;
    Packet<T> base[panel_packets];
    Packet<T> sum[panel_packets];
    unrolled<panel_packets>([&](auto p) REIGEN_INLINE_LAMBDA {
        const Packet<T> before = load<T>(state.max + p * lanes<T>);
        const Packet<T> now = larger<T>(load<T>(largest + p * lanes<T>), before);
        const Packet<T> nothing = broadcast<T>(minus_infinity<T>);
        store<T>(state.max + p * lanes<T>, now);
        base[p] = select_equal<T>(now, nothing, broadcast<T>(0), now); // (-inf) - (-inf) is never taken
        sum[p] = broadcast<T>(0);
        store<T>(decay + p * lanes<T>, exp2<T>(psub(before, base[p])));
    });
    const auto weigh = [&]<int Keys>(const T* at, M* to) REIGEN_INLINE_LAMBDA {
        unrolled<panel_packets>([&](auto p) REIGEN_INLINE_LAMBDA {
            Packet<T> weights[k_in<M>];
            unrolled<k_in<M>>([&](auto k) REIGEN_INLINE_LAMBDA {
                weights[k] = broadcast<T>(0);
                if constexpr (k < Keys) {
                    weights[k] = exp2<T>(psub(load<T>(at + k * panel_rows<T> + p * lanes<T>), base[p]));
                    sum[p] = Eigen::internal::padd(sum[p], weights[k]);
                }
            });
            store_multiplicands<M>(to + p * lanes<T>, step_of<M>(weights));
        });
    };
    M* to = weights_in<M>(scores);
    Index k = 0;
    for (; k + k_in<M> <= keys; k += k_in<M>, to += panel_rows<T>)
        weigh.template operator()<int(k_in<M>)>(scores + k * panel_rows<T>, to);
    if (k < keys)
        weigh.template operator()<1>(scores + k * panel_rows<T>, to);
    clear_rest_of_tile<M>(keys, weights_in<M>(scores));
    unrolled<panel_packets>([&](auto p) REIGEN_INLINE_LAMBDA {
        T* const total = state.sum + p * lanes<T>;
        store<T>(total, multiply_add<T>(load<T>(total), load<T>(decay + p * lanes<T>), sum[p]));
    });
}

/// O = decay O + P V; `seen` is null where no value can spread a NaN.
template <class M, class T = SumOf<M>>
void gather_values(Index depth, LeftPanel<M> v, Index keys, const M* weights, const T* seen, const T* decay, T* out) {
    multiply_weights<M>(depth, keys, v, weights, seen,
                        [&]<int Height>(Index first, Tile<T, Height, panel_packets> tile) {
                            unrolled<Height * panel_packets>([&](auto n) REIGEN_INLINE_LAMBDA {
                                constexpr int p = n % panel_packets;
                                T* const at = out + (first + n / panel_packets) * panel_rows<T> + p * lanes<T>;
                                const Packet<T> factor = load<T>(decay + p * lanes<T>);
                                store<T>(at, multiply_add<T>(load<T>(at), factor, tile.sum[n]));
                            });
                        });
}

/// Brings two states of the same rows together. A row that has seen nothing (sum 0) leaves the other as it is, bit for
/// bit: the formula would turn -0 into 0.
template <class T>
void merge_panels(Index depth, PanelState<T> into, PanelState<T> from) {
    using Eigen::internal::padd, Eigen::internal::pmul, Eigen::internal::psub;
    const Packet<T> zero = broadcast<T>(0);
    for (Index lane = 0; lane < panel_rows<T>; lane += lanes<T>) {
        const Packet<T> max_a = load<T>(into.max + lane), max_b = load<T>(from.max + lane);
        const Packet<T> sum_a = load<T>(into.sum + lane), sum_b = load<T>(from.sum + lane);
        const Packet<T> max = larger<T>(max_a, max_b);
        const Packet<T> base = select_equal<T>(max, broadcast<T>(minus_infinity<T>), zero, max);
        const Packet<T> decay_a = exp2<T>(psub(max_a, base)), decay_b = exp2<T>(psub(max_b, base));
        const auto merged = [&](const Packet<T>& a, const Packet<T>& b) {
            const Packet<T> both = multiply_add<T>(decay_a, a, pmul(decay_b, b));
            return select_equal<T>(sum_b, zero, a, select_equal<T>(sum_a, zero, b, both));
        };
        for (Index c = 0; c < depth; ++c) {
            T* const out = into.out + c * panel_rows<T> + lane;
            store<T>(out, merged(load<T>(out), load<T>(from.out + c * panel_rows<T> + lane)));
        }
        store<T>(into.max + lane, select_equal<T>(sum_b, zero, max_a, select_equal<T>(sum_a, zero, max_b, max)));
        store<T>(into.sum + lane, merged(sum_a, sum_b));
    }
}

/// ln(sum 2^max), the maximum being an exponent of two; -infinity where the sum is 0. In double, since the error of a
/// rounded product would grow with the maximum.
template <class T>
T log_of_sum(T max, T sum) {
    return sum == T(0) ? minus_infinity<T> : T(double(max) * std::numbers::ln2 + std::log(double(sum)));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
