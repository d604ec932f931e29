#include "attention/ring_cases.hpp"

namespace ring_arguments_test {

using namespace ring_cases;

namespace {

/// Queries of one problem on keys and values of another: every rank throws, and nothing has been sent.
template <class Error>
void expect_refused(const Shape& of_queries, const Shape& of_keys, const Shape& of_values, const std::string& message,
                    const AttentionOptions& options = {}) {
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const auto part = [&](const ReferenceTensor& x) {
            return divided<float>(mesh, x, sequences(x, SequenceLayout::zigzag), Partition::whole(x.heads * x.dim));
        };
        const ReferenceTensor q = problem(of_queries, {}).q, k = problem(of_keys, {}).k, v = problem(of_values, {}).v;
        const auto of = [&](const Matrix<float>& x, const ReferenceTensor& tensor) {
            return heads(x, sequences(tensor, SequenceLayout::zigzag), tensor.dim);
        };
        const Matrix<float> mine[] = {part(q), part(k), part(v)};
        const Traffic before = world.traffic();
        try {
            ring_attention(of(mine[0], q), of(mine[1], k), of(mine[2], v), options);
            ADD_FAILURE() << "not refused: " << message;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
        }
        EXPECT_EQ(world.traffic() - before, Traffic{});
    });
}

constexpr Shape good = {2, 8, 8, 4, 2, 8, 8};

} // namespace

TEST(ring_arguments, heads_that_do_not_group_are_refused) {
    const Shape three = {2, 8, 8, 4, 3, 8, 8};
    expect_refused<ShapeError>(good, three, three, "query heads cannot be grouped over key heads");
}

TEST(ring_arguments, different_batches_are_refused) {
    const Shape three = {3, 8, 8, 4, 2, 8, 8};
    expect_refused<ShapeError>(good, three, three, "q is B 2, N 8, 4 heads of 8; k is B 3, N 8, 2 heads of 8");
}

TEST(ring_arguments, queries_and_keys_of_different_head_dim_are_refused) {
    expect_refused<ShapeError>(good, {2, 8, 8, 4, 2, 4, 8}, good, "queries and keys differ in head_dim");
}

TEST(ring_arguments, keys_and_values_of_different_length_or_heads_are_refused) {
    expect_refused<ShapeError>(good, good, {2, 8, 9, 4, 2, 8, 8}, "keys and values differ in tokens or heads");
    expect_refused<ShapeError>(good, good, {2, 8, 8, 4, 4, 8, 8}, "keys and values differ in tokens or heads");
}

TEST(ring_arguments, negative_bounds_and_scales_that_are_no_numbers_are_refused) {
    expect_refused<ArgumentError>(good, good, good, "want bounds >= 0", {Mask{-1, 0}});
    expect_refused<ArgumentError>(good, good, good, "scale is",
                                  {Mask::causal(), std::numeric_limits<double>::quiet_NaN()});
}

TEST(ring_arguments, query_heads_on_a_rank_without_their_key_head_are_refused) {
    on_mesh({{Axes::tp, 2}}, [](const Mesh& mesh) {
        const Sequences s = {1, 3};
        const auto q = Matrix<float>::zeros(mesh, s.rows(mesh, dp | cp), Partition::balanced(6 * 8, 2, 8));
        const auto k = Matrix<float>::zeros(mesh, s.rows(mesh, dp | cp), Partition::of_sizes({8, 16}));
        const Traffic before = mesh.world().traffic();
        EXPECT_THROW(ring_attention(heads(q, s, 8), heads(k, s, 8), heads(k, s, 8)), ShapeError);
        EXPECT_EQ(mesh.world().traffic() - before, Traffic{});
    });
}

TEST(ring_arguments, gradients_that_do_not_fit_are_refused) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const Divided<float> parts(mesh, problem(good, {}), SequenceLayout::zigzag);
        const auto forward = parts.attend({});
        auto dq = parts.q.clone(), dk = parts.k.clone(), dv = parts.v.clone();
        const auto backward = [&](const auto& lse, const auto& dout, auto& dkeys) {
            ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), forward.out, lse, dout,
                                    heads(dq, parts.of_queries, 8), heads(dkeys, parts.of_keys, 8),
                                    heads(dv, parts.of_keys, 8));
        };
        const Traffic before = world.traffic();
        EXPECT_THROW(backward(forward.out, forward.out, dk), ShapeError);
        EXPECT_THROW(backward(forward.lse, parts.k, dk), ShapeError);
        EXPECT_THROW(backward(forward.lse, forward.out, dq), ShapeError);
        EXPECT_EQ(world.traffic() - before, Traffic{});
    });
}

} // namespace ring_arguments_test
