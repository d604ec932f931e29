#include "kernel/attention_cases.hpp"

namespace attention_decode_test {

using namespace attention_cases;

// Few query rows on a key head: keys and values are streamed past them.

template <class T>
class attention_decode : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(attention_decode, Types);

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::vector<Shape> shapes() {
    return {{1, 1, 1, 1, 1, 8, 8},    {2, 1, 203, 4, 4, 16, 24}, {1, 1, 700, 8, 1, 64, 64},  {1, 3, 391, 4, 2, 16, 8},
            {2, 2, 97, 6, 2, 40, 72}, {1, 4, 130, 2, 1, 5, 3},   {1, 1, 96, 7, 1, 128, 128}, {1, 8, 50, 1, 1, 48, 16}};
}

TYPED_TEST(attention_decode, equals_the_reference) {
    for (const Shape& shape : shapes())
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            expect_close(dense<TypeParam>(p), reference_attention(p), p, Runs::range(0, shape.queries),
                         shape.text() + ", " + to_string(mask));
        }
}

/// So many query rows on a key head, whose features are whole packets, a few more, or fewer than one.
std::vector<Shape> shapes_of_rows(Index rows) {
    std::vector<Shape> result;
    for (const Index keys : {1, 3, 17, 96, 101, 211})
        for (const auto& [head_dim, value_dim] : {std::pair<Index, Index>{32, 16}, {80, 144}, {21, 37}, {3, 1}})
            result.push_back({1, 1, keys, 2 * rows, 2, head_dim, value_dim});
    return result;
}

TYPED_TEST(attention_decode, of_any_few_rows_and_keys_equals_the_reference) {
    for (Index rows = 1; rows <= 8; ++rows)
        for (const Shape& shape : shapes_of_rows(rows)) {
            const ReferenceProblem p = problem(shape, Mask::causal());
            expect_close(dense<TypeParam>(p), reference_attention(p), p, Runs::range(0, 1), shape.text());
        }
}

TYPED_TEST(attention_decode, of_blocks_in_any_order_equals_the_reference) {
    const std::vector<Runs> blocks = {Runs{{1, 2, 130}}, Runs{{0, 2, 50}, {260, 1, 40}}, Runs{{100, 2, 80}}};
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({2, 2, 300, 4, 2, 8, 8}, mask);
        expect_close(forward<TypeParam>(p, Runs::range(0, 2), blocks), reference_attention(p), p, Runs::range(0, 2),
                     to_string(mask));
    }
}

TYPED_TEST(attention_decode, merged_states_equal_the_reference) {
    const ReferenceProblem p = problem({1, 2, 350, 4, 2, 16, 24}, Mask::causal());
    auto state = absorb<TypeParam>(p, Runs::range(0, 2), {Runs::range(0, 200)});
    state.merge(absorb<TypeParam>(p, Runs::range(0, 2), {Runs::range(200, 150)}));
    expect_close(finish<TypeParam>(state, p, 2), reference_attention(p), p, Runs::range(0, 2), "merged");
}

TYPED_TEST(attention_decode, rows_have_the_same_bits_alone_and_among_others) {
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({1, 3, 331, 4, 2, 24, 24}, mask);
        const std::vector<Runs> blocks = {Runs::range(0, 170), Runs::range(170, 161)};
        const Output<TypeParam> all = forward<TypeParam>(p, Runs::range(0, 3), blocks);
        for (Index query = 0; query < 3; ++query)
            EXPECT_TRUE(same_rows(forward<TypeParam>(p, Runs::range(query, 1), blocks), all, query))
                << query << ' ' << to_string(mask);
    }
}

TYPED_TEST(attention_decode, a_row_has_the_same_bits_among_any_number_of_others) {
    constexpr Index most = reigen::detail::decoded_rows<TypeParam>;
    const ReferenceProblem p = problem({1, most, 203, 1, 1, 48, 80}, Mask::everything());
    const std::vector<Runs> blocks = {Runs::range(0, 203)};
    const Output<TypeParam> all = forward<TypeParam>(p, Runs::range(0, most), blocks);
    for (Index rows = 1; rows < most; ++rows)
        EXPECT_TRUE(same_rows(forward<TypeParam>(p, Runs::range(most - rows, rows), blocks), all, most - rows)) << rows;
}

TYPED_TEST(attention_decode, what_stands_at_masked_keys_does_not_leak) {
    constexpr Index key = 149;
    for (const double bad : {not_a_number, infinity})
        for (const bool in_keys : {true, false}) {
            ReferenceProblem p = problem({1, 3, 300, 2, 1, 8, 8}, Mask::window(149)); // the last query begins at 150
            const Output<TypeParam> clean = dense<TypeParam>(p);
            for (Index c = 0; c < 8; ++c)
                (in_keys ? p.k : p.v)(0, key, 0, c) = bad;
            const Output<TypeParam> got = dense<TypeParam>(p);
            for (Index i = 0; i < 3; ++i)
                for (Index h = 0; h < 2; ++h)
                    for (Index c = 0; c < 8; ++c) {
                        const bool sees_it = p.mask.seen_from(i + 297).contains(key);
                        if (!sees_it) {
                            EXPECT_EQ(got.out(0, i, h, c), clean.out(0, i, h, c)) << i;
                        } else if (std::isnan(bad)) {
                            EXPECT_TRUE(std::isnan(got.out(0, i, h, c))) << i;
                        }
                    }
        }
}

TYPED_TEST(attention_decode, of_scores_of_minus_infinity_is_nothing) {
    ReferenceProblem p = problem({1, 1, 20, 1, 1, 1, 1}, Mask::everything());
    p.q.values = {1};
    std::fill(p.k.values.begin(), p.k.values.end(), -infinity);
    const Output<TypeParam> got = dense<TypeParam>(p);
    EXPECT_EQ(got.out(0, 0, 0, 0), TypeParam(0));
    EXPECT_EQ(double(got.lse_at(0, 0, 0)), -infinity);
}

TYPED_TEST(attention_decode, reads_nothing_beside_keys_and_values_and_allocates_nothing) {
    const ReferenceProblem p = problem({1, 1, 195, 4, 2, 12, 20}, Mask::everything()); // NaN lies between the heads
    const Heads<TypeParam> q(p.q), k(p.k), v(p.v);
    AttentionState<TypeParam> state(q.view(), Runs::range(0, 1), 2, 20, rule(p));
    const Index before = reigen::memory_account()->allocations();
    state.absorb(k.view(), v.view(), Runs::range(0, 195));
    EXPECT_EQ(reigen::memory_account()->allocations(), before);
    const Output<TypeParam> got = finish<TypeParam>(state, p, 1);
    got.out.each([&](Index b, Index t, Index h, Index c) { EXPECT_FALSE(std::isnan(got.out(b, t, h, c))); });
}

TYPED_TEST(attention_decode, a_short_part_of_a_long_sequence_has_the_bits_of_the_whole) {
    const ReferenceProblem p = problem({1, 40, 130, 2, 1, 16, 16}, Mask::causal());
    const Output<TypeParam> whole = dense<TypeParam>(p);
    const Runs part = Runs::range(20, 3), keys = Runs::range(0, 130);
    const Heads<TypeParam> q(p.q, part), k(p.k, keys), v(p.v, keys);
    AttentionState<TypeParam> state(q.view(), part, 1, 16, rule(p), 40);
    state.absorb(k.view(), v.view(), keys);
    const Output<TypeParam> got = finish<TypeParam>(state, p, 3);
    for (Index i = 0; i < 3; ++i)
        for (Index h = 0; h < 2; ++h)
            for (Index c = 0; c < 16; ++c)
                EXPECT_EQ(got.out(0, i, h, c), whole.out(0, 20 + i, h, c));
    EXPECT_THROW((AttentionState<TypeParam>(q.view(), part, 1, 16, rule(p), 2)), reigen::ArgumentError);
}

/// The keys, or values, of a problem in bfloat16, and the same numbers in float.
struct Numbers {
    Heads<reigen::bfloat16> narrow;
    Heads<float> wide;

    explicit Numbers(const ReferenceTensor& from) : narrow(from), wide(from.batch, from.tokens, from.heads, from.dim) {
        wide.each([&](Index b, Index t, Index h, Index c) { wide.view().at(b, t, h)[c] = float(narrow(b, t, h, c)); });
    }
};

template <class T>
Output<T> decode(const ReferenceProblem& p, const Heads<T>& q, const Heads<T>& k, const Heads<T>& v) {
    AttentionState<T> state(q.view(), Runs::range(0, q.tokens), p.k.heads, p.v.dim, rule(p));
    state.absorb(k.view(), v.view(), Runs::range(0, k.tokens));
    return finish<T>(state, p, q.tokens);
}

void expect_float_rounded_once(const ReferenceProblem& p, const std::string& what) {
    const Numbers q(p.q), k(p.k), v(p.v);
    AttentionState<reigen::bfloat16> state(q.narrow.view(), Runs::range(0, p.q.tokens), p.k.heads, p.v.dim, rule(p));
    state.absorb(k.narrow.view(), v.narrow.view(), Runs::range(0, p.k.tokens));
    Heads<reigen::bfloat16> got(p.q.batch, p.q.tokens, p.q.heads, p.v.dim);
    std::vector<float> lse(std::size_t(p.q.batch * p.q.tokens * p.q.heads));
    state.finish(got.view(), {lse.data(), p.q.batch * p.q.tokens, p.q.heads, p.q.heads, 1});
    const Output<float> want = decode(p, q.wide, k.wide, v.wide);
    EXPECT_EQ(lse, want.lse) << what;
    got.each([&](Index b, Index t, Index h, Index c) {
        EXPECT_EQ(float(got(b, t, h, c)), float(reigen::bfloat16(want.out(b, t, h, c)))) << what;
    });
}

TEST(attention_decode, of_bfloat16_is_that_of_float_rounded_once) {
    for (Index rows = 1; rows <= 8; ++rows)
        for (const Shape& shape : shapes_of_rows(rows))
            expect_float_rounded_once(problem(shape, Mask::everything()), shape.text());
}

TEST(attention_decode, of_bfloat16_does_not_spread_what_stands_at_masked_keys) {
    for (const double bad : {not_a_number, infinity}) {
        ReferenceProblem p = problem({1, 3, 300, 2, 1, 16, 32}, Mask::window(149));
        const auto of_first_row = [&] {
            AttentionState<reigen::bfloat16> state(Heads<reigen::bfloat16>(p.q).view(), Runs::range(0, 3), 1, 32,
                                                   rule(p));
            state.absorb(Heads<reigen::bfloat16>(p.k).view(), Heads<reigen::bfloat16>(p.v).view(), Runs::range(0, 300));
            Heads<reigen::bfloat16> out(1, 3, 2, 32);
            std::vector<float> lse(6);
            state.finish(out.view(), {lse.data(), 3, 2, 2, 1});
            return std::vector<reigen::bfloat16>(out.view().at(0, 0, 0), out.view().at(0, 0, 0) + 64);
        };
        const auto clean = of_first_row();
        for (Index c = 0; c < 32; ++c)
            p.v(0, 299, 0, c) = bad; // seen by the last query only
        EXPECT_EQ(of_first_row(), clean);
    }
}

} // namespace attention_decode_test
