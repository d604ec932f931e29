#include "kernel/attention_cases.hpp"

namespace attention_forward_test {

using namespace attention_cases;

template <class T>
class attention_forward : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(attention_forward, Types);

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// One query and some keys of one number each, scale 1.
ReferenceProblem one_number(std::vector<double> q, std::vector<double> k, std::vector<double> v) {
    ReferenceProblem p = problem({1, Index(q.size()), Index(k.size()), 1, 1, 1, 1}, Mask::everything());
    p.q.values = std::move(q);
    p.k.values = std::move(k);
    p.v.values = std::move(v);
    p.scale = 1;
    return p;
}

std::vector<Shape> shapes() {
    return {{1, 5, 5, 1, 1, 8, 8},     {2, 37, 53, 4, 2, 8, 16},   {1, 64, 31, 4, 1, 24, 8},
            {1, 101, 203, 2, 2, 5, 3}, {2, 13, 130, 6, 3, 16, 33}, {1, 130, 130, 1, 1, 40, 40}};
}

/// Keys cut into three blocks as the three layouts do, in the order in which rank 1 would see them.
std::vector<std::vector<Runs>> cuts(Index n) {
    const Index third = n / 3, sixth = n / 6;
    const auto chunk = [&](Index c) { return reigen::Run{c * sixth, 1, c == 5 ? n - 5 * sixth : sixth}; };
    const auto stripe = [&](Index r) { return Runs{{r, 3, (n - r + 2) / 3}}; };
    return {{Runs::range(third, third), Runs::range(0, third), Runs::range(2 * third, n - 2 * third)},
            {{chunk(1), chunk(4)}, {chunk(0), chunk(5)}, {chunk(2), chunk(3)}},
            {stripe(1), stripe(0), stripe(2)}};
}

TYPED_TEST(attention_forward, equals_the_reference) {
    for (const Shape& shape : shapes())
        for (const Mask& mask : masks()) {
            const ReferenceProblem p = problem(shape, mask);
            expect_close(dense<TypeParam>(p), reference_attention(p), p, Runs::range(0, shape.queries),
                         shape.text() + ", " + to_string(mask));
        }
}

TYPED_TEST(attention_forward, of_blocks_in_any_layout_equals_the_reference) {
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({2, 61, 67, 4, 2, 8, 8}, mask);
        const ReferenceOutput want = reference_attention(p);
        for (const auto& blocks : cuts(67))
            for (const auto& queries : cuts(61))
                expect_close(forward<TypeParam>(p, queries[0], blocks), want, p, queries[0], to_string(mask));
    }
}

TYPED_TEST(attention_forward, of_many_tiles_and_chunks_equals_the_reference) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(300)}) {
        const ReferenceProblem p = problem({1, 3, 2500, 2, 1, 64, 8}, mask);
        expect_close(dense<TypeParam>(p), reference_attention(p), p, Runs::range(0, 3), to_string(mask));
    }
}

// Of the state, as far as it promises: the row of a query does not know which other queries there are, if they are more
// than are decoded.
TYPED_TEST(attention_forward, rows_have_the_same_bits_among_few_others_and_among_many) {
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({1, 75, 131, 4, 2, 24, 24}, mask);
        const std::vector<Runs> blocks = {Runs::range(0, 70), Runs::range(70, 61)};
        const Output<TypeParam> all = forward<TypeParam>(p, Runs::range(0, 75), blocks);
        for (const Index first : {0, 45, 70}) { // 5 queries in 2 heads are 10 rows
            const Output<TypeParam> few = forward<TypeParam>(p, Runs::range(first, 5), blocks);
            EXPECT_TRUE(same_rows(few, all, first)) << first << ' ' << to_string(mask);
        }
    }
}

TYPED_TEST(attention_forward, of_one_key_is_its_value_and_its_logit) { // sglang PR#35045: lse in the wrong base
    const ReferenceProblem p = problem({1, 7, 7, 2, 1, 8, 5}, Mask::window(0)); // transformers#39408
    const Output<TypeParam> got = dense<TypeParam>(p);
    for (Index i = 0; i < 7; ++i)
        for (Index h = 0; h < 2; ++h) {
            double logit = 0;
            for (Index c = 0; c < 8; ++c)
                logit += p.scale * p.q(0, i, h, c) * p.k(0, i, 0, c);
            EXPECT_NEAR(double(got.lse_at(0, i, h)), logit, 16 * std::numeric_limits<TypeParam>::epsilon());
            for (Index c = 0; c < 5; ++c)
                EXPECT_EQ(got.out(0, i, h, c), TypeParam(p.v(0, i, 0, c)));
        }
}

TYPED_TEST(attention_forward, of_large_logits_is_finite) { // ring-flash-attention PR#30
    const ReferenceProblem p = one_number({100}, {0, 0, 1, 1}, {1, 2, 4, 8});
    const Output<TypeParam> got = forward<TypeParam>(p, Runs::range(0, 1), {Runs::range(0, 2), Runs::range(2, 2)});
    EXPECT_EQ(got.out(0, 0, 0, 0), TypeParam(6));
    EXPECT_NEAR(double(got.lse_at(0, 0, 0)), 100 + std::log(2.0), 200 * std::numeric_limits<TypeParam>::epsilon());

    const double large = sizeof(TypeParam) == 4 ? 1e4 : 800;
    for (const double logit : {large, -large}) {
        const ReferenceProblem q = one_number({logit}, {1, 1, 1}, {1, 2, 6});
        const Output<TypeParam> same = dense<TypeParam>(q);
        EXPECT_EQ(same.out(0, 0, 0, 0), TypeParam(3));
        EXPECT_NEAR(double(same.lse_at(0, 0, 0)), logit + std::log(3.0),
                    1e4 * std::numeric_limits<TypeParam>::epsilon());
    }
}

TYPED_TEST(attention_forward, of_all_logits_very_negative_is_uniform) { // flashinfer#4267
    const ReferenceProblem p = one_number({1}, {-1e6, -1e6, -1e6, -1e6}, {1, 2, 3, 6});
    const Output<TypeParam> got = forward<TypeParam>(p, Runs::range(0, 1), {Runs::range(0, 1), Runs::range(1, 3)});
    EXPECT_EQ(got.out(0, 0, 0, 0), TypeParam(3));
}

TYPED_TEST(attention_forward, negative_and_zero_scales_are_scales) {
    for (const double scale : {-0.7, 0.0}) {
        ReferenceProblem p = problem({1, 9, 11, 1, 1, 8, 8}, Mask::causal());
        p.scale = scale;
        expect_close(dense<TypeParam>(p), reference_attention(p), p, Runs::range(0, 9), "scale");
    }
}

TYPED_TEST(attention_forward, without_keys_is_zero_and_the_identity) { // flash-attention PR#978
    const ReferenceProblem p = problem({1, 3, 0, 2, 2, 8, 4}, Mask::everything());
    const Output<TypeParam> got = dense<TypeParam>(p);
    got.out.each([&](Index b, Index t, Index h, Index c) { EXPECT_EQ(got.out(b, t, h, c), TypeParam(0)); });
    for (const TypeParam lse : got.lse)
        EXPECT_EQ(lse, -std::numeric_limits<TypeParam>::infinity());
    EXPECT_TRUE(dense<TypeParam>(problem({1, 0, 5, 2, 2, 8, 4}, Mask::causal())).lse.empty());
}

TYPED_TEST(attention_forward, merged_states_equal_one_that_saw_all) {
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({2, 53, 61, 2, 1, 8, 8}, mask);
        const Runs queries = Runs::range(0, 53);
        auto state = absorb<TypeParam>(p, queries, {Runs::range(20, 21)});
        state.merge(absorb<TypeParam>(p, queries, {Runs::range(0, 20), Runs::range(41, 20)}));
        expect_close(finish<TypeParam>(state, p, 53), reference_attention(p), p, queries, to_string(mask));
    }
}

TYPED_TEST(attention_forward, merging_the_identity_changes_no_bit) {       // flashinfer#4051
    ReferenceProblem p = problem({1, 53, 61, 2, 1, 8, 8}, Mask::causal()); // the first 8 queries see 1 to 8 keys
    for (double& value : p.v.values)
        value = -0.0;
    const Runs queries = Runs::range(0, 53);
    const auto identity = [&] { return absorb<TypeParam>(p, queries, {Runs{}}); };
    const auto all = [&] { return absorb<TypeParam>(p, queries, {Runs::range(0, 61)}); };
    auto left = identity();
    left.merge(all());
    auto right = all();
    right.merge(identity());
    auto both = identity();
    both.merge(identity());
    const Output<TypeParam> want = finish<TypeParam>(all(), p, 53);
    for (const auto* state : {&left, &right}) {
        const Output<TypeParam> got = finish<TypeParam>(*state, p, 53);
        EXPECT_TRUE(same_bits(got, want));
        want.out.each([&](Index b, Index t, Index h, Index c) {
            EXPECT_EQ(std::signbit(got.out(b, t, h, c)), std::signbit(want.out(b, t, h, c)));
        });
    }
    for (const TypeParam lse : finish<TypeParam>(both, p, 53).lse)
        EXPECT_EQ(lse, -std::numeric_limits<TypeParam>::infinity());
}

TYPED_TEST(attention_forward, unbounded_window_is_causal_bit_for_bit) { // TransformerEngine#3528
    const Shape shape = {1, 60, 70, 2, 1, 8, 8};
    const Output<TypeParam> want = dense<TypeParam>(problem(shape, Mask::causal()));
    EXPECT_TRUE(same_bits(dense<TypeParam>(problem(shape, Mask{std::nullopt, 0})), want));
    EXPECT_TRUE(same_bits(dense<TypeParam>(problem(shape, Mask::window(70))), want));
}

TYPED_TEST(attention_forward, what_stands_at_masked_keys_does_not_leak) {
    constexpr Index key = 60;
    for (const double bad : {not_a_number, infinity, -infinity})
        for (const Mask& mask : {Mask::causal(), Mask::window(20), Mask::window(3, 2)})
            for (const bool in_keys : {true, false}) {
                ReferenceProblem p = problem({1, 120, 120, 2, 1, 8, 8}, mask);
                const Output<TypeParam> clean = dense<TypeParam>(p);
                for (Index c = 0; c < 8; ++c)
                    (in_keys ? p.k : p.v)(0, key, 0, c) = bad;
                const Output<TypeParam> got = dense<TypeParam>(p);
                for (Index i = 0; i < 120; ++i)
                    for (Index h = 0; h < 2 && !mask.seen_from(i).contains(key); ++h) {
                        EXPECT_EQ(got.lse_at(0, i, h), clean.lse_at(0, i, h)) << i;
                        for (Index c = 0; c < 8; ++c)
                            EXPECT_EQ(got.out(0, i, h, c), clean.out(0, i, h, c)) << i;
                    }
            }
}

TYPED_TEST(attention_forward, what_is_not_a_number_at_a_visible_key_shows) {
    for (const double bad : {not_a_number, infinity})
        for (const bool first : {true, false})
            for (const Mask& mask : {Mask::everything(), Mask::causal()}) {
                ReferenceProblem p = problem({1, 120, 120, 1, 1, 8, 8}, mask);
                const Index key = first ? 0 : 110;
                for (double& value : p.q.values)
                    value = std::abs(value);
                for (Index c = 0; c < 8; ++c)
                    p.k(0, key, 0, c) = bad;
                const Output<TypeParam> got = dense<TypeParam>(p);
                for (Index i = 0; i < 120; ++i)
                    if (mask.seen_from(i).contains(key)) {
                        EXPECT_TRUE(std::isnan(got.lse_at(0, i, 0))) << i;
                        for (Index c = 0; c < 8; ++c)
                            EXPECT_TRUE(std::isnan(got.out(0, i, 0, c))) << i;
                    }
            }
}

TYPED_TEST(attention_forward, does_not_read_what_it_has_not_written) { // TransformerEngine#3331
    const ReferenceProblem p = problem({2, 69, 85, 4, 2, 12, 20}, Mask::window(30));
    const Output<TypeParam> want = dense<TypeParam>(p);
    for (const int byte : {0xff, 0x44, 0x7f}) {
        reigen::memory_account()->fill_new_buffers(static_cast<unsigned char>(byte));
        EXPECT_TRUE(same_bits(dense<TypeParam>(p), want));
    }
    reigen::memory_account()->fill_new_buffers(std::nullopt);
}

TYPED_TEST(attention_forward, allocates_nothing_while_it_absorbs) {
    const ReferenceProblem p = problem({1, 69, 185, 4, 2, 12, 20}, Mask::causal());
    const Heads<TypeParam> q(p.q), k(p.k), v(p.v);
    AttentionState<TypeParam> state(q.view(), Runs::range(0, 69), 2, 20, rule(p));
    const Runs positions = Runs::range(0, 185);
    const Index before = reigen::memory_account()->allocations();
    state.absorb(k.view(), v.view(), positions);
    EXPECT_EQ(reigen::memory_account()->allocations(), before);
}

TYPED_TEST(attention_forward, polls_between_panels) {
    const ReferenceProblem p = problem({1, 200, 30, 1, 1, 8, 8}, Mask::everything());
    int polls = 0;
    const auto before = reigen::exchange_poll_hook({[](void* count) noexcept { ++*static_cast<int*>(count); }, &polls});
    dense<TypeParam>(p);
    reigen::exchange_poll_hook(before);
    EXPECT_EQ(polls, (200 + reigen::detail::panel_rows<TypeParam> - 1) / reigen::detail::panel_rows<TypeParam>);
}

TYPED_TEST(attention_forward, shapes_that_do_not_fit_are_refused) {
    const ReferenceProblem p = problem({1, 4, 4, 3, 2, 8, 8}, Mask::everything());
    EXPECT_THROW(dense<TypeParam>(p), reigen::ShapeError); // 3 heads over 2
    const ReferenceProblem good = problem({1, 4, 4, 4, 2, 8, 8}, Mask::everything());
    const Heads<TypeParam> q(good.q), k(good.k), narrow(1, 4, 2, 7), short_v(1, 3, 2, 8);
    AttentionState<TypeParam> state(q.view(), Runs::range(0, 4), 2, 8, rule(good));
    EXPECT_THROW(state.absorb(narrow.view(), k.view(), Runs::range(0, 4)), reigen::ShapeError);
    EXPECT_THROW(state.absorb(k.view(), short_v.view(), Runs::range(0, 4)), reigen::ShapeError);
    EXPECT_THROW(state.absorb(k.view(), k.view(), Runs::range(0, 3)), reigen::ShapeError);
    EXPECT_THROW((AttentionState<TypeParam>(q.view(), Runs::range(0, 5), 2, 8, rule(good))), reigen::ShapeError);
}

} // namespace attention_forward_test
