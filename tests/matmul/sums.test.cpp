#include "matmul/dense.hpp"

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/sums.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace sums_test {

using namespace dense_products;
using namespace reigen;

namespace {

Dense down_columns(const Dense& x) {
    Dense sums(1, x.cols);
    for (Index i = 0; i < x.rows; ++i)
        for (Index j = 0; j < x.cols; ++j)
            sums(0, j) += x(i, j);
    return sums;
}

} // namespace

TEST(sums, of_columns_and_rows_in_every_placement) {
    const auto check = [](const Mesh& mesh) {
        const Dense x = integers(7, 5, 1);
        const Dense columns = down_columns(x);
        const Dense rows = transposed(down_columns(transposed(x)));
        const auto both = sharded < split_rows(dp) | split_cols(tp), double > (mesh, x);
        static_assert(placement_of<decltype(column_sums(both))> == (split_cols(tp) | partial(dp)));
        static_assert(placement_of<decltype(row_sums(both))> == (split_rows(dp) | partial(tp)));
        expect_equal(column_sums(both), columns);
        expect_equal(row_sums(both), rows);
        expect_equal(column_sums(sharded<split_rows(dp | tp), float>(mesh, x)), columns);
        expect_equal(column_sums(sharded<replicated, double>(mesh, x)), columns);
        expect_equal(row_sums(sharded<split_cols(dp | tp), double>(mesh, x)), rows);
        const auto turned = sharded<split_rows(tp), double>(mesh, transposed(x));
        expect_equal(column_sums(transpose(turned)), columns);
    };
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, check);
    on_every_world([&](const Communicator& world) { check(Mesh(world, {{Axes::tp, world.size()}})); });
}

TEST(sums, are_accumulated_as_gradients_are) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Dense x = integers(4, 3, 1);
        auto v = sharded<partial(tp), double>(mesh, integers(1, 3, 2));
        column_sums_into(sharded<split_rows(tp), double>(mesh, x), 1, v);
        Dense want = down_columns(x);
        for (Index j = 0; j < 3; ++j)
            want(0, j) += integers(1, 3, 2)(0, j);
        expect_equal(v, want);
        v.local().setConstant(std::numeric_limits<double>::quiet_NaN());
        column_sums_into(sharded<split_rows(tp), double>(mesh, x), 0, v);
        expect_equal(v, down_columns(x));
        Sharded<double, partial(tp)> narrow(mesh, 1, 2);
        EXPECT_THROW(column_sums_into(sharded<split_rows(tp), double>(mesh, x), 1, narrow), ShapeError);
    });
}

// Megatron#1446, gpt-neox#1257: gradients of norms saw a rank's tokens only.
TEST(sums, of_tokens_split_over_ranks_are_summed_over_them) {
    Dense tokens(4, 1);
    tokens.elements = {1, 2, 3, 4};
    on_every_world([&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto sum = redistribute<replicated>(column_sums(sharded<split_rows(tp), double>(mesh, tokens)));
        EXPECT_EQ(sum.local()(0, 0), 10);
    });
    on_world(3, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const auto x = sharded<split_rows(tp), double>(mesh, tokens, Partition::of_sizes({2, 1, 1}), 1);
        EXPECT_EQ(redistribute<replicated>(column_sums(x)).local()(0, 0), 10);
    });
}

// torchtitan#4332: the bias gradient of a row-parallel layer.
TEST(sums, the_bias_gradient_of_a_row_parallel_layer_counts_every_token_once) {
    Dense ones(4, 2);
    ones.elements.assign(8, 1);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto whole = redistribute<replicated>(column_sums(sharded<replicated, double>(mesh, ones)));
        const auto split = redistribute<replicated>(column_sums(sharded<split_rows(tp), double>(mesh, ones)));
        EXPECT_EQ(whole.local()(0, 1), 4);
        EXPECT_EQ(split.local()(0, 1), 4);
    });
}

// Megatron#7452: a parameter that all heads share; Automodel#3822: the same work done on every rank is not summed.
TEST(sums, of_a_parameter_that_split_heads_share) {
    on_world(2, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 2}});
        Dense gradients(1, 4);
        gradients.elements = {1, 2, 3, 4};
        const auto heads = sharded<split_cols(tp), double>(mesh, gradients);
        Sharded<double, partial(tp)> own(mesh, 1, 2);
        shared_sums_into(heads, 0, own);
        EXPECT_EQ(own.local()(0, 0), world.rank() == 0 ? 1 : 3);
        const auto sum = redistribute<replicated>(own);
        EXPECT_EQ(sum.local()(0, 0), 4);
        EXPECT_EQ(sum.local()(0, 1), 6);

        Sharded<double, replicated> repeated(mesh, 1, 2);
        shared_sums_into(sharded<replicated, double>(mesh, gradients), 0, repeated);
        EXPECT_EQ(redistribute<replicated>(repeated).local()(0, 1), 6);

        Sharded<double, partial(tp)> wide(mesh, 1, 4);
        EXPECT_THROW(shared_sums_into(heads, 0, wide), ShapeError);
        const auto broken = sharded<split_cols(tp), double>(mesh, gradients, 1, Partition::of_sizes({1, 3}));
        EXPECT_THROW(shared_sums_into(broken, 0, own), ShapeError);
        const Partition halves_of_two = Partition::of_runs(4, {Runs::range(1, 2), {{0, 1, 1}, {3, 1, 1}}});
        const auto mixed = sharded<split_cols(tp), double>(mesh, gradients, 1, halves_of_two);
        EXPECT_THROW(shared_sums_into(mixed, 0, own), ShapeError);
    });
}

TEST(sums, a_maximum_is_reduced_at_once_and_keeps_a_nan) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Dense x = integers(4, 7, 1);
        x(2, 5) = std::numeric_limits<double>::quiet_NaN();
        const auto maxima = row_maxima(sharded<split_cols(tp), double>(mesh, x));
        for (const Index i : {0, 1, 3}) {
            double want = x(i, 0);
            for (Index j = 1; j < 7; ++j)
                want = std::max(want, x(i, j));
            EXPECT_EQ(maxima.local()(i, 0), want);
        }
        EXPECT_TRUE(std::isnan(maxima.local()(2, 0)));
        EXPECT_EQ(row_maxima(sharded<split_cols(tp), double>(mesh, Dense(1, 0))).local()(0, 0),
                  -std::numeric_limits<double>::infinity());
    });
}

} // namespace sums_test
