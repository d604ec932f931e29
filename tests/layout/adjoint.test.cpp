#include "layout/values.hpp"

#include <reigen/core/random.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/layout/sum_overlaps.hpp>

#include <gtest/gtest.h>

namespace adjoint_test {

using namespace reigen;

namespace {

/// Small integers: a function of the global index, and of the rank where ranks hold different summands.
double random_element(int seed, int rank, Index i, Index j) {
    return double(RandomStream(std::uint64_t(seed), rank).words(1000 * i + j)[0] % 19) - 9;
}

template <Placement Where>
Sharded<double, Where> random_matrix(const Mesh& mesh, const Partition& rows, const Partition& cols, int seed) {
    Sharded<double, Where> x(mesh, rows, cols);
    for (Index i = 0; i < x.local().rows(); ++i)
        for (Index j = 0; j < x.local().cols(); ++j)
            x.local()(i, j) = random_element(seed, mesh.rank(Where.partial), x.row_runs()[i], x.col_runs()[j]);
    return x;
}

/// <x, y>, where x and y are split alike and not partial over the same axes: every rank's part, replicas once.
template <ShardedLike X, ShardedLike Y>
double inner(const X& x, const Y& y) {
    constexpr Placement p = placement_of<X>;
    constexpr Placement q = placement_of<Y>;
    static_assert(p.rows == q.rows && p.cols == q.cols && disjoint(p.partial, q.partial));
    constexpr Axes copies = (dp | pp | cp | tp | Axes::ep) - split_axes(p) - p.partial - q.partial;
    std::vector<double> sum(1, 0.0);
    if (x.mesh().rank(copies) == 0)
        for (Index i = 0; i < x.local().rows(); ++i)
            for (Index j = 0; j < x.local().cols(); ++j)
                sum[0] += x.local()(i, j) * y.local()(i, j);
    x.mesh().world().all_reduce(sum);
    return sum[0];
}

/// y = redistribute<To>(x), the gradient of y placed as Dy.
template <Placement From, Placement To, Placement Dy, Placement Gradient = gradient_placement(From)>
void check_adjoint(const Mesh& mesh) {
    SCOPED_TRACE(concat(From, " -> ", To, ", gradient ", Dy));
    const auto x = random_matrix<From>(mesh, scrambled(mesh, From.rows, 5), scrambled(mesh, From.cols, 7), 1);
    const auto y = redistribute<To>(x, scrambled(mesh, To.rows, 5), scrambled(mesh, To.cols, 7));
    const auto dy = random_matrix<Dy>(mesh, y.row_partition(), y.col_partition(), 2);
    const auto dx = redistribute_adjoint<From, Gradient>(dy, x.row_partition(), x.col_partition());
    static_assert(placement_of<decltype(dx)> == Gradient);
    EXPECT_EQ(inner(y, dy), inner(x, dx));
}

} // namespace

TEST(adjoint, over_one_axis) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        check_adjoint<partial(tp), replicated, replicated>(mesh);
        check_adjoint<partial(tp), replicated, partial(tp)>(mesh);
        check_adjoint<partial(tp), split_rows(tp), split_rows(tp)>(mesh);
        check_adjoint<partial(tp), split_cols(tp), split_cols(tp)>(mesh);
        check_adjoint<split_rows(tp), replicated, replicated>(mesh);
        check_adjoint<split_rows(tp), replicated, partial(tp)>(mesh);
        check_adjoint<split_cols(tp), replicated, replicated>(mesh);
        check_adjoint<split_cols(tp), replicated, partial(tp)>(mesh);
        check_adjoint<replicated, split_rows(tp), split_rows(tp)>(mesh);
        check_adjoint<replicated, split_rows(tp), split_rows(tp), partial(tp)>(mesh);
        check_adjoint<replicated, split_cols(tp), split_cols(tp), partial(tp)>(mesh);
        check_adjoint<split_rows(tp), split_cols(tp), split_cols(tp)>(mesh);
        check_adjoint<split_cols(tp), split_rows(tp), split_rows(tp)>(mesh);
        check_adjoint<split_rows(tp), split_rows(tp), split_rows(tp)>(mesh);
        check_adjoint<split_rows(tp), partial(tp), replicated>(mesh);
        check_adjoint<replicated, partial(tp), replicated>(mesh);
    });
}

TEST(adjoint, over_two_axes) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        constexpr Placement rows = split_rows(dp);
        constexpr Placement all_rows = split_rows(dp | tp);
        check_adjoint<rows | partial(tp), rows, rows>(mesh);
        check_adjoint<rows | partial(tp), rows, rows | partial(tp)>(mesh);
        check_adjoint<rows | partial(tp), all_rows, all_rows>(mesh);
        check_adjoint<all_rows, rows, rows | partial(tp)>(mesh);
        check_adjoint<all_rows, rows, rows>(mesh);
        check_adjoint<rows, all_rows, all_rows, rows | partial(tp)>(mesh);
        check_adjoint<partial(dp | tp), rows | split_cols(tp), rows | split_cols(tp)>(mesh);
        check_adjoint<rows | split_cols(tp), split_rows(tp) | split_cols(dp), split_rows(tp) | split_cols(dp)>(mesh);
        check_adjoint<split_rows(tp) | partial(dp), split_cols(dp), split_cols(dp) | partial(tp)>(mesh);
    });
}

// Where several ranks hold a copy, each has its own gradient of it, and the item's gradient is their sum.
TEST(adjoint, of_handing_out_copies_is_the_sum_over_their_holders) {
    on_world(3, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const Partition shared = Partition::of_runs(5, {Runs::range(0, 3), {{3, 1, 1}, {1, 1, 2}}, Runs::range(2, 3)});
        const auto x = random_matrix<replicated>(mesh, Partition::whole(4), Partition::whole(5), 1);
        const auto y = redistribute<split_cols(tp)>(x, 4, shared);
        Sharded<double, split_cols(tp)> dy(mesh, 4, shared);
        for (Index i = 0; i < 4; ++i)
            for (Index j = 0; j < dy.local().cols(); ++j)
                dy.local()(i, j) = random_element(2, world.rank(), i, dy.col_runs()[j]);
        const double every_copy = inner(y, dy);
        sum_overlaps(dy);
        const auto dx = redistribute_adjoint<replicated>(dy, 4, 5);
        EXPECT_EQ(every_copy, inner(x, dx));
    });
}

} // namespace adjoint_test
