#include "matmul/dense.hpp"

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/elementwise.hpp>

#include <gtest/gtest.h>

namespace elementwise_test {

using namespace dense_products;
using namespace reigen;

namespace {

template <class Function>
Dense dense(Index m, Index n, Function value) {
    Dense x(m, n);
    for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j)
            x(i, j) = value(i, j);
    return x;
}

} // namespace

TEST(elementwise, add_scale_and_rows_in_every_placement) {
    const Dense x = integers(5, 7, 1);
    const Dense y = integers(5, 7, 2);
    const Dense v = integers(1, 7, 3);
    const auto check = [&]<Placement Where>(const Mesh& mesh) {
        const auto sx = sharded<Where, double>(mesh, x);
        const auto sy = sharded<Where, double>(mesh, y);
        expect_equal(add(sx, sy), dense(5, 7, [&](Index i, Index j) { return x(i, j) + y(i, j); }));
        expect_equal(add(sx.clone(), sy), dense(5, 7, [&](Index i, Index j) { return x(i, j) + y(i, j); }));
        expect_equal(scale(3, sx), dense(5, 7, [&](Index i, Index j) { return 3 * x(i, j); }));
        if constexpr (!is_partial(Where)) {
            const auto row = sharded<split_cols(Where.cols), double>(mesh, v);
            expect_equal(add_bias(sx, row), dense(5, 7, [&](Index i, Index j) { return x(i, j) + v(0, j); }));
            expect_equal(scale_columns(sx, row), dense(5, 7, [&](Index i, Index j) { return x(i, j) * v(0, j); }));
        }
    };
    const auto check_mesh = [&](const Mesh& mesh) {
        check.operator()<replicated>(mesh);
        check.operator()<split_rows(tp)>(mesh);
        check.operator()<split_cols(tp)>(mesh);
        check.operator()<partial(tp)>(mesh);
        check.operator()<split_rows(dp) | split_cols(tp)>(mesh);
        check.operator()<split_rows(dp) | partial(tp)>(mesh);
    };
    on_every_world([&](const Communicator& world) { check_mesh(Mesh(world, {{Axes::tp, world.size()}})); });
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, check_mesh);
}

TEST(elementwise, what_is_given_away_becomes_the_result_and_nothing_else_changes) {
    const Mesh mesh;
    const Dense x = integers(3, 4, 1);
    auto sx = sharded<replicated, double>(mesh, x);
    const double* const memory = sx.data();
    const auto doubled = scale(2, sx);
    EXPECT_NE(doubled.data(), memory);
    expect_equal(sx, x);
    const auto same = scale(1, std::move(sx));
    EXPECT_EQ(same.data(), memory);
    expect_equal(same, x);
}

TEST(elementwise, views_of_either_storage_order) {
    const Mesh mesh;
    Eigen::MatrixXd x(3, 4);
    Eigen::VectorXd bias(4);
    for (Index j = 0; j < 4; ++j) {
        bias(j) = double(10 * j);
        for (Index i = 0; i < 3; ++i)
            x(i, j) = integers(3, 4, 1)(i, j);
    }
    const auto row = shard<replicated>(mesh, bias);
    expect_equal(add_bias(shard<replicated>(mesh, x), transpose(row)),
                 dense(3, 4, [&](Index i, Index j) { return x(i, j) + double(10 * j); }));
    const auto turned = shard<replicated>(mesh, x);
    expect_equal(add(transpose(turned), transpose(turned)), dense(4, 3, [&](Index i, Index j) { return 2 * x(j, i); }));
}

TEST(elementwise, shapes_that_do_not_fit_throw) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Sharded<double, split_cols(tp)> x(mesh, 3, 4);
        const Sharded<double, split_cols(tp)> y(mesh, 3, 5);
        EXPECT_THROW(add(x, y), ShapeError);
        EXPECT_THROW(add_bias(x, y), ShapeError);
        EXPECT_THROW(scale_columns(x, Sharded<double, split_cols(tp)>(mesh, 1, 5)), ShapeError);
        if (world.size() > 1) {
            std::vector<Index> widths(std::size_t(world.size()), 0);
            widths.back() = 4;
            EXPECT_THROW(add(x, Sharded<double, split_cols(tp)>(mesh, 3, Partition::of_sizes(widths))), ShapeError);
        }
    });
}

} // namespace elementwise_test
