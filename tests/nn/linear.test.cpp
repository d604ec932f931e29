#include "nn/support.hpp"

#include <reigen/layout/blocks.hpp>
#include <reigen/nn/gradients.hpp>
#include <reigen/nn/linear.hpp>

namespace linear_test {

using namespace layer_cases;
using namespace reigen;

namespace {

constexpr double tolerance = 1e-12;
const Initial normal = {.deviation = 1, .seed = 3};
const Sequences sequences{2, 5, SequenceLayout::zigzag};

Dense column_sums_of(const Dense& x) {
    Dense sums = Dense::Zero(1, x.cols());
    for (Index i = 0; i < x.rows(); ++i)
        sums.row(0) += x.row(i);
    return sums;
}

template <class X>
X tokens(const Mesh& mesh, const Extent& features, const Dense& values) {
    return X::from_global(mesh, sequences.rows(mesh, X::placement.rows), features, values);
}

/// One forward and two backward passes of y = x W + b on a mesh, against dense products: gradients add up.
template <class Layer>
void expect_as_dense(Layer& layer, const Mesh& mesh, const Extent& in, const Extent& out) {
    using X = typename Layer::X;
    using Y = typename Layer::Y;
    const auto parameters = layer.parameters();
    const Index width_in = parameters[0].rows, width_out = parameters[0].cols;
    const Dense x = waves(1, 10, width_in), dy = waves(2, 10, width_out);
    const Dense w = waves(3, width_in, width_out), b = waves(4, 1, width_out);
    set_value(parameters[0], w);
    set_value(parameters[1], b);
    for (int pass = 1; pass <= 2; ++pass) {
        auto [y, saved] = layer.forward(tokens<X>(mesh, in, x));
        expect_matches(y, times(x, w).rowwise() + b.row(0), tolerance, "y");
        const X dx = layer.backward(std::move(saved), tokens<Y>(mesh, out, dy));
        expect_matches(dx, times(dy, w.transpose()), tolerance, "dx");
    }
    synchronise_gradients<double>(parameters);
    expect_gradient(parameters[0], 2 * times(x.transpose(), dy), tolerance);
    expect_gradient(parameters[1], 2 * column_sums_of(dy), tolerance);
}

template <Placement Residual>
void expect_both_as_dense(const Mesh& mesh) {
    for (const Index features : {7, 2}) { // uneven, and fewer than ranks
        ColumnParallelLinear<double, Residual> column(mesh, "column", 4, features, normal);
        expect_as_dense(column, mesh, 4, features);
        RowParallelLinear<double, Residual> row(mesh, "row", features, 4, normal);
        expect_as_dense(row, mesh, features, 4);
    }
}

TEST(linear, column_and_row_parallel_layers_are_the_dense_ones_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        expect_both_as_dense<residual_on_every_rank>(mesh);
        expect_both_as_dense<residual_over_tp>(mesh);
    });
}

TEST(linear, features_may_be_divided_by_the_user) {
    on_mesh({{tp, 3}}, [](const Mesh& mesh) {
        const Partition features = Partition::of_sizes({1, 0, 4});
        ColumnParallelLinear<double, residual_over_tp> column(mesh, "column", 4, features, normal);
        expect_as_dense(column, mesh, 4, features);
        RowParallelLinear<double, residual_over_tp> row(mesh, "row", features, 4, normal);
        expect_as_dense(row, mesh, features, 4);
    });
}

TEST(linear, without_bias_there_is_one_parameter) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        ColumnParallelLinear<double, residual_on_every_rank> column(mesh, "column", 4, 6, normal, false);
        RowParallelLinear<double, residual_on_every_rank> row(mesh, "row", 6, 4, normal, false);
        const Dense x = waves(1, 10, 4), w = waves(2, 4, 6), v = waves(3, 6, 4);
        ASSERT_EQ(column.parameters().size(), 1U);
        ASSERT_EQ(row.parameters().size(), 1U);
        set_value(column.parameters()[0], w);
        set_value(row.parameters()[0], v);
        auto [hidden, saved] = column.forward(tokens<Sharded<double, residual_on_every_rank>>(mesh, 4, x));
        expect_matches(row.forward(std::move(hidden)).y, times(times(x, w), v), tolerance, "y");
    });
}

// Columns that two ranks hold: each rank's dy is that of its own copy.
TEST(linear, shared_columns_give_the_input_the_gradients_of_all_copies) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        const Partition shared = NamedBlocks::heads({2, 1}, 1).partition(2); // q0 k v | q1 k v
        ColumnParallelLinear<double, residual_on_every_rank> layer(mesh, "qkv", 3, shared, normal);
        const Dense w = waves(1, 3, 4);
        set_value(layer.parameters()[0], w);
        using X = Sharded<double, residual_on_every_rank>;
        auto [y, saved] = layer.forward(tokens<X>(mesh, 3, waves(2, 10, 3)));
        Dense both = Dense::Zero(10, 4);
        for (Index i = 0; i < 10; ++i) {
            y.local().row(i) << 1, 10, 100; // the same on both ranks
            both.row(i) << 1, 1, 20, 200;
        }
        expect_matches(layer.backward(std::move(saved), y), times(both, w.transpose()), tolerance, "dx");
        const auto parameters = layer.parameters();
        synchronise_gradients<double>(parameters);
        expect_gradient(parameters[1], 10 * both.topRows(1), tolerance);
    });
}

// text-generation-inference#1036
TEST(linear, text_generation_inference_1036_the_row_bias_counts_once) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{tp, world.size()}});
        RowParallelLinear<double, residual_on_every_rank> row(mesh, "row", 4, 2, normal);
        set_value(row.parameters()[0], Dense::Ones(4, 2));
        Dense bias(1, 2), x(1, 4), want(1, 2);
        bias << 100, 200;
        x << 1, 2, 3, 4;
        want << 110, 210;
        set_value(row.parameters()[1], bias);
        auto sharded = Sharded<double, features_over_tp>::from_global(mesh, x);
        expect_matches(row.forward(std::move(sharded)).y, want, 0, "y");
    });
}

template <Placement Residual>
void expect_row_bias_gradient_of_four(const Mesh& mesh) {
    RowParallelLinear<double, Residual> row(mesh, "row", 3, 2, normal);
    auto x = Sharded<double, features_over_tp>::from_global(mesh, waves(1, 4, 3));
    auto [y, saved] = row.forward(std::move(x));
    y.local().setOnes();
    (void)row.backward(std::move(saved), y);
    const auto parameters = row.parameters();
    synchronise_gradients<double>(parameters);
    expect_gradient(parameters[1], Dense::Constant(1, 2, 4), 0);
}

// torchtitan#4332
TEST(linear, torchtitan_4332_the_row_bias_gradient_is_the_sum_over_all_tokens_on_every_rank) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{tp, world.size()}});
        expect_row_bias_gradient_of_four<residual_on_every_rank>(mesh);
        expect_row_bias_gradient_of_four<residual_over_tp>(mesh);
    });
}

template <Placement Residual>
void expect_shard_is_kept(const Mesh& mesh) {
    ColumnParallelLinear<float, Residual> column(mesh, "column", 8, 8, normal);
    auto x = Sharded<float, Residual>::zeros(mesh, 16, 8);
    const float* const data = x.data();
    auto [y, saved] = column.forward(std::move(x));
    EXPECT_EQ(saved.x.data(), data);
}

TEST(linear, saves_its_input_without_a_copy_and_no_gathered_one) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        expect_shard_is_kept<residual_on_every_rank>(mesh);
        expect_shard_is_kept<residual_over_tp>(mesh);
    });
}

} // namespace

} // namespace linear_test
