#include "attention/ring_cases.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/core/memory.hpp>

namespace ring_pieces_test {

using namespace ring_cases;

// Blocks so large that the gradients of their keys and values travel by heads: in the bits of heads one by one, which
// are too small for that.

namespace {

constexpr Index heads_of_keys = 4, group = 2, dim = 256, value_dim = 128, tokens_a_rank = 150;
constexpr Index pieces = 3; // of 150 x 4 x 384 floats

template <class T>
struct Gradients {
    Matrix<T> dq, dk, dv;
};

template <class T>
Gradients<T> gradients_of(const Mesh& mesh, const ReferenceProblem& p, const Mask& mask, SequenceLayout layout) {
    const Divided<T> x(mesh, p, layout);
    const AttentionOptions options = {.mask = mask, .scale = p.scale};
    const auto [out, lse] = x.attend(options);
    Gradients<T> g = {Matrix<T>(x.q.spec()), Matrix<T>(x.k.spec()), Matrix<T>(x.v.spec())};
    ring_attention_backward(x.q_heads(), x.k_heads(), x.v_heads(), out, lse, out, heads(g.dq, x.of_queries, dim),
                            heads(g.dk, x.of_keys, dim), heads(g.dv, x.of_keys, value_dim), options);
    return g;
}

/// Heads [first, first + count) of a tensor.
ReferenceTensor some_heads(const ReferenceTensor& all, Index first, Index count) {
    ReferenceTensor some(all.batch, all.tokens, count, all.dim);
    for (Index b = 0; b < all.batch; ++b)
        for (Index t = 0; t < all.tokens; ++t)
            for (Index h = 0; h < count; ++h)
                for (Index c = 0; c < all.dim; ++c)
                    some(b, t, h, c) = all(b, t, first + h, c);
    return some;
}

template <class T>
void expect_columns(const Matrix<T>& all, Index first, const Matrix<T>& some, const std::string& what) {
    const auto want = some.local();
    EXPECT_TRUE((all.local().middleCols(first, want.cols()).array() == want.array()).all()) << what;
}

template <class T>
void expect_as_heads_one_by_one(const Mesh& mesh, Index batch, const Mask& mask, SequenceLayout layout) {
    const Index tokens = tokens_a_rank / batch * mesh.size(cp);
    const ReferenceProblem p =
        problem({batch, tokens, tokens, group * heads_of_keys, heads_of_keys, dim, value_dim}, mask);
    const Gradients<T> all = gradients_of<T>(mesh, p, mask, layout);
    for (Index h = 0; h < heads_of_keys; ++h) {
        const ReferenceProblem one = {some_heads(p.q, group * h, group), some_heads(p.k, h, 1), some_heads(p.v, h, 1),
                                      mask, p.scale};
        const Gradients<T> alone = gradients_of<T>(mesh, one, mask, layout);
        const std::string what = concat("head ", h, ", ", to_string(layout), ", ", to_string(mask));
        expect_columns(all.dq, h * group * dim, alone.dq, "dq, " + what);
        expect_columns(all.dk, h * dim, alone.dk, "dk, " + what);
        expect_columns(all.dv, h * value_dim, alone.dv, "dv, " + what);
    }
}

} // namespace

TEST(ring_pieces, heads_in_pieces_have_the_bits_of_heads_one_by_one) {
    for (const int ranks : {1, 2, 3})
        on_world(ranks, [](const Communicator& world) {
            const Mesh mesh = ring_of(world);
            expect_as_heads_one_by_one<float>(mesh, 1, Mask::causal(), SequenceLayout::zigzag);
            expect_as_heads_one_by_one<float>(mesh, 2, Mask::everything(), SequenceLayout::striped);
            expect_as_heads_one_by_one<bfloat16>(mesh, 1, Mask::window(170, 50), SequenceLayout::contiguous);
        });
}

TEST(ring_pieces, heads_in_pieces_have_the_same_bits_on_a_bad_transport) {
    for (const int ranks : {2, 3})
        on_world(ranks, [](const Communicator& world) {
            const Communicator late = faulty(unchecked(world), {.delay = 2e-3, .late = 3, .synchronous = true});
            expect_as_heads_one_by_one<float>(ring_of(late), 1, Mask::causal(), SequenceLayout::zigzag);
        });
}

TEST(ring_pieces, gradients_travel_in_as_many_messages_as_pieces) {
    EXPECT_EQ(Index(detail::gradient_pieces(heads_of_keys, tokens_a_rank * heads_of_keys * 384 * 4).size()), pieces);
    EXPECT_EQ(detail::gradient_pieces(1, Index(1) << 30).size(), 1U);
    EXPECT_EQ(detail::gradient_pieces(64, Index(1) << 30).size(), 8U);
    EXPECT_EQ(detail::gradient_pieces(64, 100).size(), 1U);
    on_world(2, [](const Communicator& world) {
        const Mesh mesh = ring_of(unchecked(world));
        const Index tokens = 2 * tokens_a_rank;
        const Mask all = Mask::everything();
        const ReferenceProblem p = problem({1, tokens, tokens, heads_of_keys, heads_of_keys, dim, value_dim}, all);
        const Divided<float> x(mesh, p, SequenceLayout::zigzag);
        (void)x.attend({.mask = all});
        const Traffic forward = mesh[cp].traffic();
        gradients_of<float>(mesh, p, all, SequenceLayout::zigzag);
        const Traffic both = mesh[cp].traffic() - forward;
        EXPECT_EQ(both.messages, 2 * forward.messages + pieces);
        EXPECT_EQ(both.bytes, 3 * forward.bytes);
    });
}

} // namespace ring_pieces_test
