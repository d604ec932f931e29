#include "layout/values.hpp"

#include <reigen/layout/blocks.hpp>
#include <reigen/layout/sum_overlaps.hpp>

#include <gtest/gtest.h>

namespace sum_overlaps_test {

using namespace reigen;

namespace {

double copy_of(int rank, Index i, Index j) {
    return double(1000 * (rank + 1) + 10 * i + j);
}

double sum_of_copies(const Partition& p, Index i, Index j, Index item) {
    double sum = 0;
    for (int rank = 0; rank < p.ranks(); ++rank)
        if (p.runs(rank).find(item))
            sum += copy_of(rank, i, j);
    return sum;
}

} // namespace

TEST(sum_overlaps, sums_the_columns_that_several_ranks_hold) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        for (const HeadGroups groups : {HeadGroups{4, 2}, {3, 1}, {4, 4}}) {
            const Partition cols = NamedBlocks::heads(groups, 2).partition(world.size());
            Sharded<double, split_cols(tp) | partial(dp)> x(mesh, 3, cols);
            for (Index i = 0; i < 3; ++i)
                for (Index j = 0; j < x.local().cols(); ++j)
                    x.local()(i, j) = copy_of(world.rank(), i, x.col_runs()[j]);
            sum_overlaps(x);
            for (Index i = 0; i < 3; ++i)
                for (Index j = 0; j < x.local().cols(); ++j)
                    EXPECT_EQ(x.local()(i, j), sum_of_copies(cols, i, x.col_runs()[j], x.col_runs()[j]));
        }
    });
}

TEST(sum_overlaps, sums_rows_through_a_strided_view) {
    on_world(3, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const Partition rows =
            Partition::of_runs(4, {{{0, 1, 2}, {3, 1, 1}}, {{3, 1, 1}, {1, 1, 1}}, Runs::range(1, 2)});
        Eigen::MatrixXd memory = Eigen::MatrixXd::Constant(6, 5, -9);
        auto local = memory.block(1, 1, rows.count(world.rank()), 2);
        for (Index i = 0; i < local.rows(); ++i)
            for (Index j = 0; j < 2; ++j)
                local(i, j) = copy_of(world.rank(), rows.runs(world.rank())[i], j);
        sum_overlaps(shard<split_rows(tp)>(mesh, local, rows, 2));
        for (Index i = 0; i < local.rows(); ++i)
            for (Index j = 0; j < 2; ++j) {
                const Index item = rows.runs(world.rank())[i];
                EXPECT_EQ(local(i, j), sum_of_copies(rows, item, j, item));
            }
        EXPECT_EQ(memory(0, 1), -9);
        EXPECT_EQ(memory(1 + local.rows(), 1), -9);
        EXPECT_EQ(memory(1, 3), -9);
    });
}

TEST(sum_overlaps, sends_nothing_where_nothing_overlaps) {
    on_world(2, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 2}});
        auto x = filled<split_cols(tp)>(mesh, 3, 4);
        const Index before = mesh[tp].traffic().messages;
        sum_overlaps(x);
        EXPECT_EQ(mesh[tp].traffic().messages, before);
        expect_values(x);
    });
}

} // namespace sum_overlaps_test
