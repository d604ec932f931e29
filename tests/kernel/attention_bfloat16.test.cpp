#include "kernel/attention_cases.hpp"
#include "support/bits.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace attention_bfloat16_test {

using namespace attention_cases;
using reigen::bfloat16;

// Attention of bfloat16 is attention in float of the same numbers, its results rounded once: exactly, where bfloat16 is
// widened. Where it is multiplied in pairs, weights of keys and gradients of scores are rounded too.

constexpr bool exact = !reigen::detail::multiplies_pairs;

/// The largest relative error of rounding to bfloat16.
constexpr double half_unit = 1.0 / 256;

/// The same numbers in float.
Heads<float> widened(const Heads<bfloat16>& from) {
    Heads<float> result(from.batch, from.tokens, from.heads, from.dim);
    result.each([&](Index b, Index t, Index h, Index c) { result.view().at(b, t, h)[c] = float(from(b, t, h, c)); });
    return result;
}

/// The same tensor without signs.
Heads<bfloat16> without_signs(const Heads<bfloat16>& from) {
    Heads<bfloat16> result(from.batch, from.tokens, from.heads, from.dim);
    result.each([&](Index b, Index t, Index h, Index c) {
        result.view().at(b, t, h)[c] = bfloat16(std::abs(float(from(b, t, h, c))));
    });
    return result;
}

template <class A, class B>
void expect_same(const Heads<A>& got, const Heads<B>& want, const std::string& what) {
    got.each([&](Index b, Index t, Index h, Index c) {
        EXPECT_EQ(float(got(b, t, h, c)), float(A(want(b, t, h, c)))) << what;
    });
}

/// Sums whose terms are rounded before they are added up; `sizes` are the sums of the terms' sizes.
template <class A>
void expect_sums_of_rounded(const Heads<A>& got, const Heads<float>& want, const Heads<float>& sizes,
                            const std::string& what) {
    const double units = std::is_same_v<A, bfloat16> ? 2 : 1; // its own rounding too
    got.each([&](Index b, Index t, Index h, Index c) {
        EXPECT_NEAR(double(got(b, t, h, c)), double(want(b, t, h, c)),
                    1.02 * units * half_unit * double(sizes(b, t, h, c)) + 1e-6)
            << what;
    });
}

/// Sums of many rounded terms, whose sizes are not known: in the root mean square.
template <class A>
void expect_near_in_norm(const Heads<A>& got, const Heads<float>& want, const std::string& what) {
    double difference = 0, size = 0, count = 0;
    got.each([&](Index b, Index t, Index h, Index c) {
        difference += std::pow(double(got(b, t, h, c)) - double(want(b, t, h, c)), 2);
        size += std::pow(double(want(b, t, h, c)), 2);
        ++count;
    });
    EXPECT_LE(std::sqrt(difference), half_unit * std::sqrt(size) + 1e-6 * std::sqrt(count)) << what;
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

TEST(attention_bfloat16, forward_is_that_of_float_rounded) {
    for (const Shape& shape : shapes)
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            const Heads<bfloat16> q(p.q);
            const auto blocks = two_blocks(p);
            const Result<bfloat16> got = attend(p, q, blocks);
            const Result<float> want = attend(p, widened(q), widened(blocks));
            const std::string what = shape.text() + ", " + to_string(mask);
            if (exact || q.tokens * q.heads / p.k.heads <= reigen::detail::decoded_rows<float>) {
                expect_same(got.out, want.out, what);
                EXPECT_EQ(got.lse, want.lse) << what;
                continue;
            }
            auto unsigned_values = blocks;
            for (Block<bfloat16>& block : unsigned_values)
                block.v = without_signs(block.v);
            const Result<float> sizes = attend(p, widened(q), widened(unsigned_values));
            expect_sums_of_rounded(got.out, want.out, sizes.out, what);
            for (std::size_t i = 0; i < got.lse.size(); ++i)
                if (std::isinf(want.lse[i])) {
                    EXPECT_EQ(got.lse[i], want.lse[i]) << what;
                } else {
                    EXPECT_NEAR(got.lse[i], want.lse[i], 4e-6 * score_bound(p)) << what;
                }
        }
}

TEST(attention_bfloat16, gradients_are_those_of_float_and_only_the_queries_are_rounded_in_the_end) {
    for (const Shape& shape : shapes)
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            ReferenceTensor incoming(p.q.batch, p.q.tokens, p.q.heads, p.v.dim);
            fill(incoming, 4);
            const Heads<bfloat16> q(p.q), dout(incoming);
            const auto blocks = two_blocks(p);
            const Result<bfloat16> forward = attend(p, q, blocks);
            const auto got = differentiate(p, q, blocks, forward, dout);
            const Result<float> wide_forward = {widened(forward.out), forward.lse};
            const auto want = differentiate(p, widened(q), widened(blocks), wide_forward, widened(dout));
            const auto sizes =
                differentiate(p, widened(q), widened(blocks), wide_forward, widened(without_signs(dout)));
            const std::string what = shape.text() + ", " + to_string(mask);
            exact ? expect_same(got.dq, want.dq, what) : expect_near_in_norm(got.dq, want.dq, what);
            for (std::size_t n = 0; n < blocks.size(); ++n)
                if (exact) {
                    expect_same(got.dk[n], want.dk[n], what);
                    expect_same(got.dv[n], want.dv[n], what);
                } else {
                    expect_near_in_norm(got.dk[n], want.dk[n], what);
                    expect_sums_of_rounded(got.dv[n], want.dv[n], sizes.dv[n], what);
                }
        }
}

/// Attention in T over blocks in the type in which they are stored.
template <class T, class Stored>
std::vector<T> numbers_of_passes(const ReferenceProblem& p, const std::vector<Block<Stored>>& blocks) {
    const Heads<T> q(p.q);
    Output<T> forward = {Heads<T>(q.batch, q.tokens, q.heads, p.v.dim),
                         std::vector<T>(std::size_t(q.batch * q.tokens * q.heads))};
    AttentionState<T> state(q.view(), Runs::range(0, q.tokens), p.k.heads, p.v.dim, rule(p));
    for (const Block<Stored>& block : blocks)
        state.absorb(block.k.view(), block.v.view(), block.positions);
    state.finish(forward.out.view(), forward.lse_view());
    std::vector<T> numbers = forward.lse;
    const auto append = [&](const Heads<T>& heads) {
        heads.each([&](Index b, Index t, Index h, Index c) { numbers.push_back(heads(b, t, h, c)); });
    };
    append(forward.out);
    AttentionGradient<T> gradient({q.view(), forward.out.view(), forward.out.view(), forward.lse_view()},
                                  Runs::range(0, q.tokens), p.k.heads, rule(p));
    for (const Block<Stored>& block : blocks) {
        Heads<T> dk(p.k.batch, block.positions.size(), p.k.heads, p.k.dim),
            dv(p.v.batch, block.positions.size(), p.v.heads, p.v.dim);
        dk.zero();
        dv.zero();
        gradient.absorb_heads(0, block.k.view(), block.v.view(), block.positions, dk.view(), dv.view());
        append(dk);
        append(dv);
    }
    Heads<T> dq(q.batch, q.tokens, q.heads, q.dim);
    gradient.finish(dq.view());
    append(dq);
    return numbers;
}

template <class T>
void expect_narrow_as_widened() {
    for (const Shape& shape : shapes)
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            const auto narrow = two_blocks(p);
            std::vector<Block<T>> wide;
            for (const Block<bfloat16>& block : narrow) {
                Block<T> copy = {Heads<T>(p.k, block.positions), Heads<T>(p.v, block.positions), block.positions};
                const auto widen = [](const Heads<bfloat16>& from, Heads<T>& to) {
                    from.each([&](Index b, Index t, Index h, Index c) {
                        to.view().at(b, t, h)[c] = T(float(from(b, t, h, c)));
                    });
                };
                widen(block.k, copy.k);
                widen(block.v, copy.v);
                wide.push_back(std::move(copy));
            }
            EXPECT_TRUE(same_bits(numbers_of_passes<T>(p, narrow), numbers_of_passes<T>(p, wide)))
                << shape.text() << ", " << to_string(mask);
        }
}

TEST(attention_bfloat16, keys_and_values_stored_narrower_have_the_bits_of_their_widened_copies) {
    expect_narrow_as_widened<float>();
    expect_narrow_as_widened<double>();
}

void fill_token(Heads<bfloat16>& heads, Index token, float number) {
    for (Index b = 0; b < heads.batch; ++b)
        for (Index h = 0; h < heads.heads; ++h)
            std::fill_n(heads.view().at(b, token, h), heads.dim, bfloat16(number));
}

/// Sixty queries on as many keys, causal; `key` fills a key and its value, `gradient` a row of the incoming gradient.
struct Poisoned {
    ReferenceProblem p = problem({2, 60, 60, 4, 2, 20, 12}, Mask::causal());
    Index token;

    std::pair<Result<bfloat16>, Backward<bfloat16>> run(float key, float gradient) const {
        ReferenceTensor incoming(2, 60, 4, 12);
        fill(incoming, 4);
        Heads<bfloat16> k(p.k), v(p.v), dout(incoming);
        fill_token(k, token, key);
        fill_token(v, token, key);
        fill_token(dout, token, gradient);
        const Heads<bfloat16> q(p.q);
        const std::vector<Block<bfloat16>> blocks = {{k, v, Runs::range(0, 60)}};
        const Result<bfloat16> forward = attend(p, q, blocks);
        return {forward, differentiate(p, q, blocks, forward, dout)};
    }
};

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// The tokens before or after a place have the same bits.
template <class A>
void expect_same_beside(const Heads<A>& got, const Heads<A>& want, Index token, bool before, const char* what) {
    got.each([&](Index b, Index t, Index h, Index c) {
        if (before ? t < token : t > token) {
            EXPECT_EQ(float(got(b, t, h, c)), float(want(b, t, h, c))) << what << " of token " << t;
        }
    });
}

TEST(attention_bfloat16, a_key_that_is_not_seen_spreads_no_NaN) {
    for (const Index token : {40, 41}) {
        const Poisoned problem{.token = token};
        const auto [zero, zero_gradients] = problem.run(0, 0);
        const auto [out, gradients] = problem.run(nan, 0);
        expect_same_beside(out.out, zero.out, token, true, "out");
        expect_same_beside(gradients.dq, zero_gradients.dq, token, true, "dq");
    }
}

TEST(attention_bfloat16, a_row_that_does_not_see_spreads_no_NaN) {
    for (const Index token : {20, 21}) {
        const Poisoned problem{.token = token};
        const Backward<bfloat16> zero = problem.run(1, 0).second, gradients = problem.run(1, nan).second;
        expect_same_beside(gradients.dv[0], zero.dv[0], token, false, "dv");
        expect_same_beside(gradients.dk[0], zero.dk[0], token, false, "dk");
        expect_same_beside(gradients.dq, zero.dq, token, false, "dq");
        expect_same_beside(gradients.dq, zero.dq, token, true, "dq");
    }
}

TEST(attention_bfloat16, a_key_of_infinite_distance_weighs_nothing) {
    for (const Index tokens : {5, 48, 61}) { // rows that fill no panel, or one
        ReferenceProblem p = problem({1, tokens, 40, 2, 1, 16, 16}, Mask::everything());
        Heads<bfloat16> q(p.q), k(p.k), v(p.v);
        for (Index t = 0; t < tokens; ++t)
            for (Index h = 0; h < 2; ++h)
                q.view().at(0, t, h)[0] = bfloat16(1.0F);
        k.view().at(0, 7, 0)[0] = bfloat16(-std::numeric_limits<float>::infinity());
        ReferenceTensor incoming(1, tokens, 2, 16);
        fill(incoming, 4);
        const std::vector<Block<bfloat16>> blocks = {{k, v, Runs::range(0, 40)}};
        const Result<bfloat16> forward = attend(p, q, blocks);
        const Backward<bfloat16> gradients = differentiate(p, q, blocks, forward, Heads<bfloat16>(incoming));
        for (Index c = 0; c < 16; ++c) {
            EXPECT_EQ(gradients.dv[0](0, 7, 0, c), 0.0F) << tokens;
            EXPECT_EQ(gradients.dk[0](0, 7, 0, c), 0.0F) << tokens;
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
