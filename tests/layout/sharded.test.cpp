#include "layout/values.hpp"

#include <reigen/layout/block_view.hpp>

#include <gtest/gtest.h>

namespace sharded_test {

using namespace reigen;

TEST(sharded, from_global_holds_this_ranks_rows_and_columns) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        const auto x = Sharded < double, split_rows(dp) | split_cols(tp) > ::from_global(mesh, 5, 3, value);
        EXPECT_EQ(x.local().rows(), mesh.rank(dp) == 0 ? 3 : 2);
        EXPECT_EQ(x.local().cols(), mesh.rank(tp) == 0 ? 2 : 1);
        expect_values(x);
        const auto sum = Sharded<double, partial(dp | tp)>::from_global(mesh, 5, 3, value);
        expect_values(sum);
    });
}

TEST(sharded, from_global_takes_a_dense_matrix_of_either_storage_order) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Eigen::MatrixXd columns(3, 4);
        RowMatrix<double> rows(3, 4);
        for (Index i = 0; i < 3; ++i)
            for (Index j = 0; j < 4; ++j)
                rows(i, j) = columns(i, j) = value(i, j);
        expect_values(Sharded<double, split_cols(tp)>::from_global(mesh, columns));
        expect_values(Sharded<double, split_rows(tp)>::from_global(mesh, rows));
        expect_values(Sharded<double, split_rows(tp)>::from_global(mesh, scrambled(mesh, tp, 3), 4, rows));
        EXPECT_THROW((Sharded<double, split_rows(tp)>::from_global(mesh, 4, 4, rows)), ShapeError);
    });
}

TEST(sharded, partitions_are_those_of_the_mesh) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        EXPECT_THROW((Sharded<float, split_cols(tp)>(mesh, 4, Partition::balanced(8, world.size() + 1))), ShapeError);
        EXPECT_THROW((Sharded<float, replicated>(mesh, Partition::balanced(8, 2), 4)), ShapeError);
    });
}

TEST(sharded, memory_is_entered_under_the_axes_that_split_it) {
    on_world(2, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 2}});
        const auto bytes = [](Axes split) {
            const auto entries = memory_account()->entries();
            const auto found = entries.find({MemoryUse::activations, split});
            return found == entries.end() ? 0 : found->second.current;
        };
        const Sharded<double, split_cols(tp)> split(mesh, 3, 4);
        const Sharded<double, partial(tp)> whole(mesh, 3, 4);
        EXPECT_EQ(bytes(tp), Index(3 * 2 * sizeof(double)));
        EXPECT_EQ(bytes(Axes::none), Index(3 * 4 * sizeof(double)));
    });
}

// TransformerEngine#1761: a 16-bit partial sum loses what the other ranks add.
TEST(sharded, a_partial_of_bfloat16_is_held_in_float) {
    static_assert(std::is_same_v<Sharded<bfloat16, partial(tp)>::Element, float>);
    static_assert(std::is_same_v<Sharded<bfloat16, split_rows(tp)>::Element, bfloat16>);
    static_assert(std::is_same_v<ShardedView<const bfloat16, partial(tp)>::Element, const float>);
    static_assert(std::is_same_v<Sharded<double, partial(tp)>::Element, double>);
}

TEST(sharded, a_view_looks_at_the_users_memory_whatever_its_order) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const ShardSpec spec(mesh, split_cols(tp), 3, 7);
        Eigen::MatrixXd big = Eigen::MatrixXd::Constant(5, 9, -9);
        auto block = big.block(1, 2, 3, spec.local_cols());
        const auto x = shard<split_cols(tp)>(mesh, block, 3, 7);
        EXPECT_EQ(x.strided().data, &big(1, 2));
        for (Index i = 0; i < 3; ++i)
            for (Index j = 0; j < spec.local_cols(); ++j)
                x.strided()(i, j) = value(i, x.col_runs()[j]);
        expect_values(x);
        EXPECT_EQ(big.block(1, 2, 3, spec.local_cols()), x.local());
        EXPECT_EQ(big(0, 2), -9);
        EXPECT_EQ(big(4, 2), -9);
        EXPECT_THROW(shard<split_cols(tp)>(mesh, block, 4, 7), ShapeError);
    });
}

TEST(sharded, a_transposed_view_exchanges_rows_and_columns) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        auto x = filled < split_rows(dp) | split_cols(tp) > (mesh, 5, 3);
        const auto turned = transpose(x);
        static_assert(placement_of<decltype(turned)> == (split_rows(tp) | split_cols(dp)));
        EXPECT_EQ(turned.rows(), 3);
        EXPECT_EQ(turned.row_partition(), x.col_partition());
        EXPECT_EQ(turned.strided().data, x.data());
        EXPECT_EQ(turned.local(), x.local().transpose());
        static_assert(std::is_const_v<decltype(transpose(std::as_const(x)))::Element>);
        expect_values(transpose(turned));
    });
}

TEST(sharded, clone_has_memory_of_its_own) {
    auto x = filled<replicated>(Mesh(), 2, 3);
    const auto copy = x.clone();
    x.local().setZero();
    expect_values(copy);
}

TEST(sharded, a_named_block_is_a_matrix_of_its_own) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const NamedBlocks blocks = {{"gate", 3}, {"up", 3}};
        auto x = filled<split_cols(tp)>(mesh, 2, blocks.partition(world.size()));
        const auto up = block_view(x, blocks, "up");
        EXPECT_EQ(up.cols(), 3);
        EXPECT_EQ(up.col_partition(), Partition::balanced(3, world.size()));
        for (Index i = 0; i < 2; ++i)
            for (Index j = 0; j < up.strided().cols; ++j)
                EXPECT_EQ(up.strided()(i, j), value(i, 3 + up.col_runs()[j]));
        auto other = filled<split_cols(tp)>(mesh, 2, 6);
        if (world.size() > 1) {
            EXPECT_THROW(block_view(other, blocks, "up"), ShapeError);
        }
    });
}

} // namespace sharded_test
