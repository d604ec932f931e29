#pragma once

#include <reigen/attention/own_gradients.hpp>
#include <reigen/attention/ring_forward.hpp>
#include <reigen/attention/travelling_gradients.hpp>
#include <reigen/kernel/attention_backward.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

template <class S, Placement Where, WireType Wire>
struct AttentionArguments {
    const Heads<const S, Where>& q;
    const Heads<const S, Where>& k;
    const Heads<const S, Where>& v;
    const AttentionOptionsOn<Wire>& options;

    ScoreRule rule() const { return options.rule(q.head_dim(), q.sequences().length, k.sequences().length); }
};

template <class S, Placement Where>
void check_gradient(const char* name, const Heads<S, Where>& gradient, const Heads<const S, Where>& of) {
    require<ShapeError>(gradient.spec() == of.spec() && gradient.head_dim() == of.head_dim(),
                        "ring_attention_backward: ", name, " is ", describe_heads(gradient),
                        ", or lies on other ranks than what it is the gradient of: ", describe_heads(of));
}

/// A gradient would be written over what is still to be read, or over another one.
template <class S, Placement Where, class... Other>
void check_apart(const char* name, const Heads<S, Where>& gradient, const Other*... others) {
    const S* const first = gradient.view().data;
    require(gradient.view().size() == 0 || ((first != others) && ...), "ring_attention_backward: ", name,
            " is the memory of another argument");
}

/// The heads whose gradients travel together. The last to come home has nothing to travel under: so that little is left
/// of it, those of a few heads are on their way while those of the next are computed. Messages of less than 256 KB would
/// gain less than they cost: 0.2 ms on a wire of 10 Gbit/s.
inline std::vector<Range> gradient_pieces(Index heads, Index bytes_of_all) {
    constexpr Index piece_bytes = Index(1) << 18, most = 8;
    const int pieces = int(std::clamp<Index>(bytes_of_all / piece_bytes, 1, std::min(heads, most)));
    std::vector<Range> result;
    for (int piece = 0; piece < pieces; ++piece)
        result.push_back(balanced_range(heads, pieces, piece));
    return result;
}

/// The gradients of the queries stay in `state`; those of keys and values go to where their blocks are at home.
template <class Wire, class S, Placement Where, class A = Accumulator<S>>
void go_round_with_gradients(const TravellingKeys<Wire, S, Where>& keys, Turn turn, AttentionGradient<S>& state,
                             HeadsView<A> dk, HeadsView<A> dv) {
    struct Piece {
        Range heads;
        KeyBlockShape shape;
        TravellingGradients<A> gradients;
    };
    std::vector<Piece> pieces;
    for (const Range& heads : gradient_pieces(dk.heads, keys.largest() * Index(sizeof(A)))) {
        const KeyBlockShape shape = keys.shape().of_heads(heads.count);
        pieces.push_back({heads, shape, {keys.ring(), keys.route(), turn, shape.size(dk.tokens)}});
    }
    keys.go_round(turn, [&](const VisitingKeys<Wire>& block) {
        const Index tokens = block.positions.size();
        if (block.step == 0) {
            state.absorb_heads(0, block.k, block.v, block.positions, dk, dv);
            return;
        }
        for (Piece& piece : pieces)
            piece.gradients.expect(block.owner, block.step, piece.shape.size(tokens));
        for (Piece& piece : pieces)
            piece.gradients.visit(block.owner, block.step, piece.shape.size(tokens), [&](A* sum) {
                state.absorb_heads(piece.heads.first, heads_in(block.k, piece.heads), heads_in(block.v, piece.heads),
                                   block.positions, piece.shape.keys(sum, tokens), piece.shape.values(sum, tokens));
            });
    });
    for (Piece& piece : pieces)
        piece.gradients.come_home([&](const A* sum) {
            add_heads(piece.shape.keys(sum, dk.tokens), heads_in(dk, piece.heads));
            add_heads(piece.shape.values(sum, dv.tokens), heads_in(dv, piece.heads));
        });
}

template <class S, Placement Where, WireType Wire>
void differentiate(const AttentionArguments<S, Where, Wire>& arguments, const AttentionOutputs<S>& outputs,
                   HeadsView<S> dq, HeadsView<S> dk, HeadsView<S> dv) {
    const auto& [q, k, v, options] = arguments;
    AttentionGradient<S> state(outputs, q.positions(), k.view().heads, arguments.rule());
    const OwnGradients<S> own_dk(dk), own_dv(dv);
    const TravellingKeys<OnWire<S, Wire>, S, Where> keys(q, k, v, arguments.rule());
    for (const Turn turn : both_turns)
        if (turn == Turn::onward || keys.route().steps(turn) > 0)
            go_round_with_gradients(keys, turn, state, own_dk.sum(), own_dv.sum());
    own_dk.finish();
    own_dv.finish();
    state.finish(dq);
}

} // namespace detail

/// Gradients of `ring_attention`, given those of its output and, where somebody used it, of its lse.
///
///     ring_attention_backward(q, k, v, out, lse, dout, dq, dk, dv);    // dq, dk, dv: heads(...) of what is written
///
/// Keys and values go round again, with the gradients that each rank adds to them, which then come home; those of the
/// queries stay. With AttentionOptionsOn<WireType::bf16> they are the gradients of what the forward pass with it
/// computed, taken at the rounded keys and values, and travel in their own type. dq, dk and dv are overwritten; they may
/// be column blocks of one packed matrix, but share no memory with what is read.
///
/// Shapes      q, k, v as in the forward pass; out, lse its result; dout a matrix like out, dlse like lse;
///             dq, dk, dv like q, k, v
/// Cost        2 B Hq (3 d + 2 dv) flops for each pair of query and key, but for tiles that the mask hides. A rank sends
///             the same blocks as forward, and for each of them B S_j Hkv (d + dv) numbers of the accumulator type: those
///             of some heads while the next are worked on, in up to 8 messages of 256 KB or more. Of bfloat16, as many
///             are held until the last has come home, and rounded once
/// Collective  as `ring_attention`
/// Throws      ShapeError, ArgumentError on every rank before any message
/// Order       own queries first, then the ranks in the order in which the block passes them; the same bits in
///             every run
template <detail::HeadsLike Q, detail::HeadsLike K, detail::HeadsLike V, detail::ShardedOrHeads Out,
          detail::ShardedOrHeads Lse, detail::ShardedOrHeads DOut, WireType Wire = WireType::unchanged>
void ring_attention_backward(
    const Q& q, const K& k, const V& v, const Out& out, const Lse& lse, const DOut& dout,
    const Heads<typename Q::Scalar, Q::placement>& dq, const Heads<typename Q::Scalar, Q::placement>& dk,
    const Heads<typename Q::Scalar, Q::placement>& dv, const AttentionOptionsOn<Wire>& options = {},
    const std::optional<ShardedView<const Accumulator<typename Q::Scalar>, Q::placement>>& dlse = {}) {
    using S = typename Q::Scalar;
    constexpr Placement Where = Q::placement;
    static_assert(!detail::HeadsLike<Out> && !detail::HeadsLike<Lse> && !detail::HeadsLike<DOut>,
                  "reigen: out, lse and dout are matrices as the forward pass gives them; pass x, not heads(x, ...)");
    static_assert(Where == K::placement && Where == V::placement && Where == placement_of<Out> &&
                      Where == placement_of<Lse> && Where == placement_of<DOut>,
                  "reigen: all arguments of the attention's backward need the placement of the queries");
    const Heads<const S, Where> queries = q, keys = k, values = v;
    const Index value_dim = values.head_dim();
    detail::check_attention("ring_attention_backward", queries, keys, values, options);
    detail::check_over_queries("ring_attention_backward", "out", out.spec(), queries, value_dim);
    detail::check_over_queries("ring_attention_backward", "dout", dout.spec(), queries, value_dim);
    detail::check_over_queries("ring_attention_backward", "lse", lse.spec(), queries, 1);
    if (dlse)
        detail::check_over_queries("ring_attention_backward", "dlse", dlse->spec(), queries, 1);
    detail::check_gradient("dq", dq, queries);
    detail::check_gradient("dk", dk, keys);
    detail::check_gradient("dv", dv, values);
    const S *const q0 = queries.view().data, *const k0 = keys.view().data, *const v0 = values.view().data;
    const S *const out0 = out.strided().data, *const dout0 = dout.strided().data;
    detail::check_apart("dq", dq, q0, k0, v0, out0, dout0, dk.view().data, dv.view().data);
    detail::check_apart("dk", dk, q0, k0, v0, out0, dout0, dv.view().data);
    detail::check_apart("dv", dv, q0, k0, v0, out0, dout0);
    if (queries.view().heads == 0) // nor does any other rank of this ring have any
        return;
    detail::agree_on_attention("ring_attention_backward", queries, keys, values, options);
    const auto over_queries = [&](const auto& x) {
        return heads(ShardedView<const S, Where>(x.view()), queries.sequences(), value_dim).view();
    };
    const AttentionOutputs<S> outputs = {queries.view(), over_queries(out), over_queries(dout),
                                         Strided<const Accumulator<S>>(lse.strided()),
                                         dlse ? dlse->strided() : Strided<const Accumulator<S>>{}};
    detail::differentiate(detail::AttentionArguments<S, Where, Wire>{queries, keys, values, options}, outputs,
                          dq.view(), dk.view(), dv.view());
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
