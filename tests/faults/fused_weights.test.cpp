#include "support/worlds.hpp"

#include <reigen/layout/block_view.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fused_weights_test {

using namespace reigen;

namespace {

/// The number of a column of q | k | v, the same in both storage orders: 1000 block + head.
std::vector<double> ids(const NamedBlocks& blocks, Index head_dim) {
    std::vector<double> result(std::size_t(blocks.size()));
    double block = 0;
    for (const std::string name : {"q", "k", "v"}) {
        const Runs& where = blocks.where(name);
        for (Index i = 0; i < where.size(); ++i)
            result[std::size_t(where[i])] = 1000 * block + double(i / head_dim);
        ++block;
    }
    return result;
}

auto weight(const Mesh& mesh, const NamedBlocks& blocks, Index head_dim) {
    return Sharded<double, split_cols(tp)>::from_global(
        mesh, 2, blocks.partition(mesh.size(tp)),
        [of = ids(blocks, head_dim)](Index i, Index j) { return double(10000 * i) + of[std::size_t(j)]; });
}

} // namespace

// xllm#1616: gate|up cut straight through gave a rank gates whose ups were on another.
TEST(faults, xllm_1616_every_rank_holds_the_same_features_of_all_halves) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        for (Index features = 0; features <= 9; ++features) {
            const NamedBlocks blocks = {{"gate", features}, {"up", features}, {"down", features}};
            const auto x = Sharded<double, split_cols(tp)>::from_global(mesh, 1, blocks.partition(world.size()),
                                                                        [](Index, Index j) { return double(j); });
            const auto gate = block_view(x, blocks, "gate"), up = block_view(x, blocks, "up"),
                       down = block_view(x, blocks, "down");
            ASSERT_EQ(gate.local().cols(), balanced_range(features, world.size(), world.rank()).count);
            ASSERT_EQ(up.local().cols(), gate.local().cols());
            for (Index j = 0; j < gate.local().cols(); ++j) {
                EXPECT_EQ(up.local()(0, j), gate.local()(0, j) + double(features));
                EXPECT_EQ(down.local()(0, j), gate.local()(0, j) + double(2 * features));
            }
        }
    });
}

// ColossalAI#817: a projection stored by groups of heads, and one stored by blocks, are the same heads on every rank.
TEST(faults, colossalai_817_heads_stored_by_groups_and_by_blocks_are_the_same_heads) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        for (const HeadGroups groups : {HeadGroups{4, 2}, {4, 4}, {4, 1}, {6, 3}, {1, 1}})
            for (const Index head_dim : {1, 3}) {
                const NamedBlocks by_block = NamedBlocks::heads(groups, head_dim);
                const NamedBlocks by_group = NamedBlocks::interleaved_heads(groups, head_dim);
                const auto a = weight(mesh, by_block, head_dim), b = weight(mesh, by_group, head_dim);
                EXPECT_EQ(a.local(), b.local());
                const auto q = block_view(a, by_block, "q"), k = block_view(a, by_block, "k");
                for (Index j = 0; j < q.local().cols(); ++j) { // each query head with the key head that it reads
                    const Index group = q.local().cols() / k.local().cols();
                    EXPECT_EQ(Index(q.local()(0, j)) / groups.group(), Index(k.local()(0, j / group)) - 1000);
                }
            }
    });
}

} // namespace fused_weights_test
