#include "kernel/attention_cases.hpp"

namespace attention_backward_test {

using namespace attention_cases;

template <class T>
class attention_backward : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(attention_backward, Types);

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::vector<Shape> shapes() {
    return {{1, 5, 5, 1, 1, 8, 8},     {2, 37, 53, 4, 2, 8, 16},   {1, 64, 31, 4, 1, 24, 80},
            {1, 101, 203, 2, 2, 5, 3}, {2, 13, 130, 6, 3, 16, 33}, {1, 130, 130, 1, 1, 40, 136}};
}

struct Incoming {
    ReferenceTensor dout, dlse;
};

Incoming incoming(const ReferenceProblem& p, bool with_dlse) {
    Incoming in = {{p.q.batch, p.q.tokens, p.q.heads, p.v.dim}, {}};
    fill(in.dout, 4);
    if (with_dlse) {
        in.dlse = {p.q.batch, p.q.tokens, p.q.heads, 1};
        fill(in.dlse, 5);
    }
    return in;
}

template <class T>
void expect_close(const Gradients<T>& got, const ReferenceGradients& want, const ReferenceProblem& p,
                  const Runs& queries, const std::vector<Runs>& blocks, const std::string& what) {
    const double sums = std::sqrt(double(p.q.tokens * p.q.heads / p.k.heads)); // dK and dV sum over queries
    const double bound = 16 * score_bound(p) * std::sqrt(double(p.v.dim));
    EXPECT_LE(error_ratio<T>(got.dq, want.dq, queries, bound), 4) << "dq, " << what;
    for (std::size_t n = 0; n < blocks.size(); ++n) {
        EXPECT_LE(error_ratio<T>(got.dk[n], want.dk, blocks[n], bound * sums), 4) << "dk, " << what;
        EXPECT_LE(error_ratio<T>(got.dv[n], want.dv, blocks[n], bound * sums), 4) << "dv, " << what;
    }
}

/// sum(dout o out) + sum(dlse o lse) by the reference; rows without keys have no lse to differentiate.
double objective(const ReferenceProblem& p, const Incoming& in) {
    const ReferenceOutput output = reference_attention(p);
    double sum = 0;
    for (std::size_t i = 0; i < output.out.values.size(); ++i)
        sum += in.dout.values[i] * output.out.values[i];
    for (std::size_t i = 0; i < in.dlse.values.size(); ++i)
        if (!std::isinf(output.lse.values[i]))
            sum += in.dlse.values[i] * output.lse.values[i];
    return sum;
}

/// Largest difference between a gradient and central differences of the objective.
double difference(ReferenceProblem p, ReferenceTensor ReferenceProblem::* which, const ReferenceTensor& gradient,
                  const Incoming& in) {
    constexpr double step = 1e-5;
    double worst = 0;
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
        double& x = (p.*which).values[i];
        const double before = x;
        x = before + step;
        const double above = objective(p, in);
        x = before - step;
        const double below = objective(p, in);
        x = before;
        worst = std::max(worst, std::abs((above - below) / (2 * step) - gradient.values[i]));
    }
    return worst;
}

template <class T>
Gradients<T> dense_backward(const ReferenceProblem& p, const Incoming& in) {
    return backward<T>(p, Runs::range(0, p.q.tokens), {Runs::range(0, p.k.tokens)}, dense<T>(p), in.dout, in.dlse);
}

template <class T>
bool same_bits(const Heads<T>& a, const Heads<T>& b) {
    bool same = a.tokens == b.tokens;
    a.each([&](Index i, Index t, Index h, Index c) { same = same && a(i, t, h, c) == b(i, t, h, c); });
    return same;
}

TEST(attention_reference, gradients_are_the_differences_of_its_output) {
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({2, 4, 5, 2, 1, 3, 2}, mask);
        const Incoming in = incoming(p, true);
        const ReferenceGradients g = reference_attention_backward(p, in.dout, in.dlse);
        EXPECT_LE(difference(p, &ReferenceProblem::q, g.dq, in), 1e-8) << to_string(mask);
        EXPECT_LE(difference(p, &ReferenceProblem::k, g.dk, in), 1e-8) << to_string(mask);
        EXPECT_LE(difference(p, &ReferenceProblem::v, g.dv, in), 1e-8) << to_string(mask);
    }
}

TYPED_TEST(attention_backward, equals_the_reference) {
    for (const Shape& shape : shapes())
        for (const Mask& mask : masks())
            for (const bool with_dlse : {false, true}) {
                const ReferenceProblem p = problem(shape, mask);
                const Incoming in = incoming(p, with_dlse);
                expect_close(dense_backward<TypeParam>(p, in), reference_attention_backward(p, in.dout, in.dlse), p,
                             Runs::range(0, shape.queries), {Runs::range(0, shape.keys)},
                             shape.text() + ", " + to_string(mask));
            }
}

TYPED_TEST(attention_backward, of_blocks_in_any_order_equals_the_reference) {
    const std::vector<Runs> blocks = {Runs{{1, 2, 30}}, Runs{{0, 2, 10}, {40, 2, 10}}, Runs{{20, 2, 10}, {60, 1, 7}}};
    for (const Mask& mask : masks()) {
        const ReferenceProblem p = problem({2, 67, 67, 4, 2, 8, 8}, mask);
        const Incoming in = incoming(p, true);
        const Runs queries = Runs::range(0, 67);
        expect_close(backward<TypeParam>(p, queries, blocks, dense<TypeParam>(p), in.dout, in.dlse),
                     reference_attention_backward(p, in.dout, in.dlse), p, queries, blocks, to_string(mask));
    }
}

// The gradients of keys are sums over queries, so those of two halves of the queries add up.
TYPED_TEST(attention_backward, adds_to_the_gradients_of_keys_and_values) {
    const ReferenceProblem p = problem({1, 50, 50, 2, 1, 8, 8}, Mask::causal());
    const Incoming in = incoming(p, false);
    const Heads<TypeParam> k(p.k), v(p.v);
    Gradients<TypeParam> sum = {Heads<TypeParam>(p.q), {Heads<TypeParam>(p.k)}, {Heads<TypeParam>(p.v)}};
    sum.dk[0].zero();
    sum.dv[0].zero();
    for (const Runs& queries : {Runs{{0, 2, 25}}, Runs{{1, 2, 25}}}) {
        Output<TypeParam> output = forward<TypeParam>(p, queries, {Runs::range(0, 50)});
        const Heads<TypeParam> q(p.q, queries), d(in.dout, queries);
        AttentionGradient<TypeParam> state({q.view(), output.out.view(), d.view(), output.lse_view()}, queries, 1,
                                           rule(p));
        state.absorb(k.view(), v.view(), Runs::range(0, 50), sum.dk[0].view(), sum.dv[0].view());
    }
    const ReferenceGradients want = reference_attention_backward(p, in.dout);
    EXPECT_LE(error_ratio<TypeParam>(sum.dk[0], want.dk, Runs::range(0, 50), 100), 4);
    EXPECT_LE(error_ratio<TypeParam>(sum.dv[0], want.dv, Runs::range(0, 50), 100), 4);
}

TYPED_TEST(attention_backward, of_rows_and_keys_that_see_nothing_is_zero) {
    const ReferenceProblem p = problem({1, 9, 4, 2, 1, 8, 8}, Mask::causal()); // five queries see no key
    const Incoming in = incoming(p, true);
    const Gradients<TypeParam> got = dense_backward<TypeParam>(p, in);
    for (Index i = 0; i < 5; ++i)
        for (Index h = 0; h < 2; ++h)
            for (Index c = 0; c < 8; ++c)
                EXPECT_EQ(got.dq(0, i, h, c), TypeParam(0));
    const ReferenceProblem q = problem({1, 2, 6, 1, 1, 8, 8}, Mask::window(1)); // three keys are seen by nobody
    const Gradients<TypeParam> back = dense_backward<TypeParam>(q, incoming(q, true));
    for (Index j = 0; j < 3; ++j)
        for (Index c = 0; c < 8; ++c) {
            EXPECT_EQ(back.dk[0](0, j, 0, c), TypeParam(0));
            EXPECT_EQ(back.dv[0](0, j, 0, c), TypeParam(0));
        }
}

// Every score -infinity without a mask: the weights are 0, as after a forward that put out 0 with lse -infinity.
TYPED_TEST(attention_backward, of_values_behind_scores_of_minus_infinity_is_zero) {
    ReferenceProblem p = problem({1, 1, 2, 1, 1, 1, 1}, Mask::everything());
    p.q.values = {1};
    p.k.values = {-infinity, -infinity};
    const Output<TypeParam> output = dense<TypeParam>(p);
    EXPECT_EQ(output.out(0, 0, 0, 0), TypeParam(0));
    const Gradients<TypeParam> got = dense_backward<TypeParam>(p, incoming(p, true));
    EXPECT_EQ(got.dv[0](0, 0, 0, 0), TypeParam(0));
    EXPECT_EQ(got.dv[0](0, 1, 0, 0), TypeParam(0));
}

TYPED_TEST(attention_backward, what_stands_at_masked_keys_does_not_leak) {
    constexpr Index key = 60;
    for (const double bad : {not_a_number, infinity})
        for (const Mask& mask : {Mask::causal(), Mask::window(20)})
            for (const bool in_keys : {true, false}) {
                ReferenceProblem p = problem({1, 120, 120, 2, 1, 8, 8}, mask);
                const Incoming in = incoming(p, true);
                const Gradients<TypeParam> clean = dense_backward<TypeParam>(p, in);
                for (Index c = 0; c < 8; ++c)
                    (in_keys ? p.k : p.v)(0, key, 0, c) = bad;
                const Gradients<TypeParam> got = dense_backward<TypeParam>(p, in);
                for (Index i = 0; i < 120; ++i)
                    for (Index h = 0; h < 2; ++h)
                        for (Index c = 0; c < 8 && !mask.seen_from(i).contains(key); ++c)
                            EXPECT_EQ(got.dq(0, i, h, c), clean.dq(0, i, h, c)) << i;
            }
}

TYPED_TEST(attention_backward, what_stands_in_queries_does_not_leak_to_keys_they_do_not_see) {
    constexpr Index query = 60;
    for (const double bad : {not_a_number, infinity})
        for (const bool in_queries : {true, false}) {
            ReferenceProblem p = problem({1, 120, 120, 2, 1, 8, 8}, Mask::causal());
            Incoming in = incoming(p, false);
            const Gradients<TypeParam> clean = dense_backward<TypeParam>(p, in);
            for (Index c = 0; c < 8; ++c)
                (in_queries ? p.q : in.dout)(0, query, 1, c) = bad;
            const Gradients<TypeParam> got = dense_backward<TypeParam>(p, in);
            for (Index j = query + 1; j < 120; ++j)
                for (Index c = 0; c < 8; ++c) {
                    EXPECT_EQ(got.dk[0](0, j, 0, c), clean.dk[0](0, j, 0, c)) << j;
                    EXPECT_EQ(got.dv[0](0, j, 0, c), clean.dv[0](0, j, 0, c)) << j;
                }
        }
}

TYPED_TEST(attention_backward, does_not_read_what_it_has_not_written) { // TransformerEngine#3331
    const ReferenceProblem p = problem({2, 69, 85, 4, 2, 12, 20}, Mask::window(30));
    const Incoming in = incoming(p, true);
    const Gradients<TypeParam> want = dense_backward<TypeParam>(p, in);
    for (const int byte : {0xff, 0x44, 0x7f}) {
        reigen::memory_account()->fill_new_buffers(static_cast<unsigned char>(byte));
        const Gradients<TypeParam> got = dense_backward<TypeParam>(p, in);
        EXPECT_TRUE(same_bits(got.dq, want.dq));
        EXPECT_TRUE(same_bits(got.dk[0], want.dk[0]));
        EXPECT_TRUE(same_bits(got.dv[0], want.dv[0]));
    }
    reigen::memory_account()->fill_new_buffers(std::nullopt);
}

TYPED_TEST(attention_backward, allocates_nothing_while_it_absorbs) {
    const ReferenceProblem p = problem({1, 69, 85, 4, 2, 12, 20}, Mask::causal());
    const Incoming in = incoming(p, false);
    Output<TypeParam> output = dense<TypeParam>(p);
    const Heads<TypeParam> q(p.q), k(p.k), v(p.v), d(in.dout);
    Heads<TypeParam> dk(p.k), dv(p.v);
    const Runs positions = Runs::range(0, 85);
    AttentionGradient<TypeParam> state({q.view(), output.out.view(), d.view(), output.lse_view()}, Runs::range(0, 69),
                                       2, rule(p));
    const Index before = reigen::memory_account()->allocations();
    state.absorb(k.view(), v.view(), positions, dk.view(), dv.view());
    EXPECT_EQ(reigen::memory_account()->allocations(), before);
}

TYPED_TEST(attention_backward, shapes_that_do_not_fit_are_refused) {
    const ReferenceProblem p = problem({1, 4, 4, 4, 2, 8, 8}, Mask::everything());
    Output<TypeParam> output = dense<TypeParam>(p);
    const Heads<TypeParam> q(p.q), few(1, 3, 4, 8);
    using State = AttentionGradient<TypeParam>;
    const auto lse = output.lse_view();
    EXPECT_THROW((State({q.view(), output.out.view(), few.view(), lse}, Runs::range(0, 4), 2, rule(p))),
                 reigen::ShapeError);
    EXPECT_THROW((State({q.view(), output.out.view(), q.view(), lse.transpose().block(0, 0, 3, 4)}, Runs::range(0, 4),
                        2, rule(p))),
                 reigen::ShapeError);
    EXPECT_THROW((State({q.view(), output.out.view(), q.view(), lse}, Runs::range(0, 4), 3, rule(p))),
                 reigen::ShapeError);
}

} // namespace attention_backward_test
