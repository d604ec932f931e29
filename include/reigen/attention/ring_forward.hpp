#pragma once

#include <reigen/attention/checks.hpp>
#include <reigen/attention/travelling_keys.hpp>
#include <reigen/kernel/attention_forward.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The output of attention, and the natural logarithm of the sum of e^score of every query and head.
template <class S, Placement Where>
struct Attended {
    Sharded<S, Where> out;
    Sharded<Accumulator<S>, Where> lse;
};

namespace detail {

/// What `heads` gives, as far as functions over it are concerned.
template <class X>
concept HeadsLike = std::is_same_v<X, Heads<typename X::Scalar, X::placement>> ||
                    std::is_same_v<X, Heads<const typename X::Scalar, X::placement>>;

/// What a function takes that tells its caller, in a sentence, which of the two it wants.
template <class X>
concept ShardedOrHeads = ShardedLike<X> || HeadsLike<X>;

template <HeadsLike X>
using ConstHeads = Heads<const typename X::Scalar, X::placement>;

/// A matrix over the queries' tokens with `columns` columns for each of their heads.
template <class T, class S, Placement Where>
Sharded<T, Where> for_each_query_head(const Heads<const S, Where>& q, Index columns) {
    const ShardSpec& spec = q.spec();
    return Sharded<T, Where>(spec.mesh, spec.row_partition, resized_heads(spec.col_partition, q.head_dim(), columns));
}

template <class S, Placement Where, WireType Wire>
Attended<S, Where> attend(const Heads<const S, Where>& q, const Heads<const S, Where>& k,
                          const Heads<const S, Where>& v, const AttentionOptionsOn<Wire>& options) {
    check_attention("ring_attention", q, k, v, options);
    Attended<S, Where> result = {for_each_query_head<S>(q, v.head_dim()), for_each_query_head<Accumulator<S>>(q, 1)};
    if (q.view().heads == 0) // nor does any other rank of this ring have any
        return result;
    agree_on_attention("ring_attention", q, k, v, options);
    const ScoreRule rule = options.rule(q.head_dim(), q.sequences().length, k.sequences().length);
    AttentionState<S> state(q.view(), q.positions(), k.view().heads, v.head_dim(), rule, q.sequences().length);
    const TravellingKeys<OnWire<S, Wire>, S, Where> keys(q, k, v, rule);
    for (const Turn turn : both_turns)
        if (turn == Turn::onward || keys.route().steps(turn) > 0)
            keys.go_round(turn, [&](const VisitingKeys<OnWire<S, Wire>>& block) {
                if (block.needed)
                    state.absorb(block.k, block.v, block.positions);
            });
    state.finish(heads(result.out, q.sequences(), v.head_dim()).view(), result.lse.strided());
    return result;
}

} // namespace detail

/// Attention of sequences that are divided over the ranks of a ring (cp): queries stay, keys and values go round.
///
///     auto [out, lse] = ring_attention(heads(q, sequences, 64), heads(k, sequences, 64), heads(v, sequences, 64));
///
/// A query sees a key by their positions in the whole sequence, whatever the layout, so all layouts and any number of
/// ranks give the same result but for rounding; with one rank it is dense attention, and nothing is sent. Queries and
/// keys may differ in length and in layout. Tokens, heads or ranks may be few, uneven or none.
///
/// With AttentionOptionsOn<WireType::bf16> the result is, in every bit, that of keys and values which were rounded
/// before: each by u = 2^-8 of itself at most. A row's lse is then off by u a, and its outputs by
/// u (1 + (1 + u) a) max |v|, or less: a is |scale| times the largest sum of |q_c k_c| over the keys that it sees, and v
/// what it sees of the values.
///
/// Shapes      q [B Nq, Hq d], k [B Nk, Hkv d], v [B Nk, Hkv dv], all of one placement {R; H; }: R of dp|cp, H the axes
///             of the heads; out [B Nq, Hq dv] and lse [B Nq, Hq] of the same placement. Of bfloat16, out is bfloat16,
///             rounded once, and lse float
/// Cost        2 B Hq (d + dv) flops for each pair of query and key, but for tiles that the mask hides. A rank sends
///             the blocks that other ranks need and it does not have to itself: B S_j Hkv (d + dv) elements of the
///             wire's type each, at most P - 1 of them. Beside its arguments it holds two blocks, and once its queries
///             and its output
/// Collective  over mesh[cp]; if R has no cp, or cp is of size 1, over none
/// Throws      ShapeError, ArgumentError on every rank before any message
/// Order       the blocks in the order in which they come by; the same bits in every run
/// Source      Liu, Zaharia, Abbeel, "Ring attention with blockwise transformers", arXiv:2310.01889; zigzag and striped
///             layouts: arXiv:2311.09431
template <detail::HeadsLike Q, detail::HeadsLike K, detail::HeadsLike V, WireType Wire = WireType::unchanged>
auto ring_attention(const Q& q, const K& k, const V& v, const AttentionOptionsOn<Wire>& options = {}) {
    static_assert(Q::placement == K::placement && K::placement == V::placement,
                  "reigen: queries, keys and values of attention need one placement; redistribute those that differ");
    using S = typename Q::Scalar;
    static_assert(std::is_same_v<S, typename K::Scalar> && std::is_same_v<S, typename V::Scalar>,
                  "reigen: queries, keys and values of attention need one scalar type");
    static_assert(std::is_same_v<Accumulator<S>, float> || std::is_same_v<Accumulator<S>, double>,
                  "reigen: queries, keys and values of attention are float, double or bfloat16");
    return detail::attend<S, Q::placement>(detail::ConstHeads<Q>(q), detail::ConstHeads<K>(k), detail::ConstHeads<V>(v),
                                           options);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
