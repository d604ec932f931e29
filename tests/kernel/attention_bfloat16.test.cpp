#include "kernel/attention_cases.hpp"

#include <type_traits>

namespace attention_bfloat16_test {

using namespace attention_cases;
using reigen::bfloat16;

// Attention of bfloat16 is attention in float of the same numbers, its results rounded once: exactly.

/// The same numbers in float.
Heads<float> widened(const Heads<bfloat16>& from) {
    Heads<float> result(from.batch, from.tokens, from.heads, from.dim);
    result.each([&](Index b, Index t, Index h, Index c) { result.view().at(b, t, h)[c] = float(from(b, t, h, c)); });
    return result;
}

void expect_rounded(const Heads<bfloat16>& got, const Heads<float>& want, const std::string& what) {
    got.each([&](Index b, Index t, Index h, Index c) {
        EXPECT_EQ(float(got(b, t, h, c)), float(bfloat16(want(b, t, h, c)))) << what;
    });
}

void expect_same(const Heads<float>& got, const Heads<float>& want, const std::string& what) {
    got.each([&](Index b, Index t, Index h, Index c) { EXPECT_EQ(got(b, t, h, c), want(b, t, h, c)) << what; });
}

template <class S>
struct Block {
    Heads<S> k, v;
    Runs positions;
};

template <class S>
struct Result {
    Heads<S> out;
    std::vector<float> lse;

    Strided<float> lse_view() { return {lse.data(), out.batch * out.tokens, out.heads, out.heads, 1}; }
};

template <class S>
Result<S> attend(const ReferenceProblem& p, const Heads<S>& q, const std::vector<Block<S>>& blocks) {
    AttentionState<S> state(q.view(), Runs::range(0, q.tokens), p.k.heads, p.v.dim, rule(p));
    for (const Block<S>& block : blocks)
        state.absorb(block.k.view(), block.v.view(), block.positions);
    Result<S> result = {Heads<S>(q.batch, q.tokens, q.heads, p.v.dim),
                        std::vector<float>(std::size_t(q.batch * q.tokens * q.heads))};
    state.finish(result.out.view(), result.lse_view());
    return result;
}

/// Gradients; those of keys and values are in float whatever S is.
template <class S>
struct Backward {
    Heads<S> dq;
    std::vector<Heads<float>> dk, dv;
};

template <class S>
Backward<S> differentiate(const ReferenceProblem& p, const Heads<S>& q, const std::vector<Block<S>>& blocks,
                          Result<S> result, const Heads<S>& dout) {
    AttentionGradient<S> state({q.view(), result.out.view(), dout.view(), result.lse_view()}, Runs::range(0, q.tokens),
                               p.k.heads, rule(p));
    Backward<S> gradients = {Heads<S>(q.batch, q.tokens, q.heads, q.dim), {}, {}};
    for (const Block<S>& block : blocks) {
        gradients.dk.emplace_back(p.k.batch, block.positions.size(), p.k.heads, p.k.dim).zero();
        gradients.dv.emplace_back(p.v.batch, block.positions.size(), p.v.heads, p.v.dim).zero();
        state.absorb(block.k.view(), block.v.view(), block.positions, gradients.dk.back().view(),
                     gradients.dv.back().view());
    }
    state.finish(gradients.dq.view());
    return gradients;
}

std::vector<Block<bfloat16>> two_blocks(const ReferenceProblem& p) {
    std::vector<Block<bfloat16>> blocks;
    const Index half = p.k.tokens / 2;
    for (const Runs& positions : {Runs::range(half, p.k.tokens - half), Runs::range(0, half)})
        blocks.push_back({Heads<bfloat16>(p.k, positions), Heads<bfloat16>(p.v, positions), positions});
    return blocks;
}

std::vector<Block<float>> widened(const std::vector<Block<bfloat16>>& blocks) {
    std::vector<Block<float>> result;
    for (const Block<bfloat16>& block : blocks)
        result.push_back({widened(block.k), widened(block.v), block.positions});
    return result;
}

const Shape shapes[] = {{1, 5, 5, 1, 1, 8, 8},
                        {2, 37, 53, 4, 2, 8, 16},
                        {1, 101, 203, 2, 2, 5, 3},
                        {1, 60, 700, 2, 1, 64, 80},
                        {1, 1, 300, 4, 1, 16, 24}};

TEST(attention_bfloat16, forward_is_that_of_float_rounded_once) {
    for (const Shape& shape : shapes)
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            const Heads<bfloat16> q(p.q);
            const auto blocks = two_blocks(p);
            const Result<bfloat16> got = attend(p, q, blocks);
            const Result<float> want = attend(p, widened(q), widened(blocks));
            const std::string what = shape.text() + ", " + to_string(mask);
            expect_rounded(got.out, want.out, what);
            EXPECT_EQ(got.lse, want.lse) << what;
        }
}

TEST(attention_bfloat16, gradients_are_those_of_float_and_only_the_queries_are_rounded) {
    for (const Shape& shape : shapes)
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            ReferenceTensor incoming(p.q.batch, p.q.tokens, p.q.heads, p.v.dim);
            fill(incoming, 4);
            const Heads<bfloat16> q(p.q), dout(incoming);
            const auto blocks = two_blocks(p);
            const Result<bfloat16> forward = attend(p, q, blocks);
            const auto got = differentiate(p, q, blocks, forward, dout);
            const auto want =
                differentiate(p, widened(q), widened(blocks), {widened(forward.out), forward.lse}, widened(dout));
            const std::string what = shape.text() + ", " + to_string(mask);
            expect_rounded(got.dq, want.dq, what);
            for (std::size_t n = 0; n < blocks.size(); ++n) {
                expect_same(got.dk[n], want.dk[n], what);
                expect_same(got.dv[n], want.dv[n], what);
            }
        }
}

TEST(attention_bfloat16, allocates_nothing_while_it_absorbs) {
    const ReferenceProblem p = problem({1, 69, 185, 4, 2, 12, 20}, Mask::causal());
    const Heads<bfloat16> q(p.q), k(p.k), v(p.v);
    AttentionState<bfloat16> state(q.view(), Runs::range(0, 69), 2, 20, rule(p));
    const Runs positions = Runs::range(0, 185);
    const Index before = reigen::memory_account()->allocations();
    state.absorb(k.view(), v.view(), positions);
    EXPECT_EQ(reigen::memory_account()->allocations(), before);
}

} // namespace attention_bfloat16_test
