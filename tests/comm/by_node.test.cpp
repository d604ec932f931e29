#include <reigen/comm/by_node.hpp>

#include "comm/invented_nodes.hpp"
#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace by_node_test {

using reigen::by_node;
using reigen::Mesh;
using reigen::detail::ranks_by_node;

namespace {

/// The numbers in `world` of the ranks of a group, in its order.
std::vector<int> members(const Communicator& world, const Communicator& group) {
    std::vector<int> ranks(std::size_t(group.size()));
    group.all_gather(std::vector<int>{world.rank()}, ranks);
    return ranks;
}

} // namespace

TEST(by_node, ranks_follow_their_machines_in_the_order_of_the_first_of_each) {
    EXPECT_EQ(ranks_by_node(std::vector{0, 1, 0, 1, 0, 1}), (std::vector{0, 2, 4, 1, 3, 5}));
    EXPECT_EQ(ranks_by_node(std::vector{0, 1, 2, 0, 1, 0}), (std::vector{0, 3, 5, 1, 4, 2})); // uneven
    EXPECT_EQ(ranks_by_node(std::vector{0, 0, 2, 2}), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(ranks_by_node(std::vector{0}), (std::vector{0}));
}

TEST(by_node, is_the_same_communicator_where_ranks_follow_their_machines) {
    on_every_backend([](const Communicator& world) { EXPECT_EQ(by_node(world), world); });
    on_world(4, [](const Communicator& world) {
        const Communicator blocks = on_invented_nodes(world, [](int rank) { return rank / 2; });
        EXPECT_EQ(by_node(blocks), blocks);
    });
}

TEST(by_node, a_mesh_over_it_has_its_fast_axis_inside_machines) {
    on_world(4, [](const Communicator& world) {
        const Communicator dealt = on_invented_nodes(world, [](int rank) { return rank % 2; });
        const Communicator ordered = by_node(dealt);
        EXPECT_EQ(members(world, ordered), (std::vector{0, 2, 1, 3}));
        EXPECT_EQ(ordered.name(), dealt.name());
        EXPECT_EQ(ordered.deadline(), dealt.deadline());
        EXPECT_EQ(by_node(ordered), ordered);
        const Mesh mesh(ordered, {{reigen::cp, 2}, {reigen::tp, 2}});
        EXPECT_EQ(members(world, mesh[reigen::tp]), (world.rank() % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3}));
        EXPECT_EQ(members(world, mesh[reigen::cp]), (world.rank() / 2 == 0 ? std::vector{0, 1} : std::vector{2, 3}));
        EXPECT_EQ(mesh.rank(reigen::tp), world.rank() / 2);
    });
}

TEST(by_node, a_ring_visits_all_ranks_of_a_machine_before_it_leaves_it) {
    on_world(4, [](const Communicator& world) {
        const Communicator dealt = on_invented_nodes(world, [](int rank) { return rank == 1 || rank == 2 ? 1 : 0; });
        const Mesh mesh(by_node(dealt), {{reigen::cp, 4}});
        EXPECT_EQ(members(world, mesh[reigen::cp]), (std::vector{0, 3, 1, 2}));
    });
    on_world(3, [](const Communicator& world) {
        const Communicator dealt = on_invented_nodes(world, [](int rank) { return rank % 2; });
        EXPECT_EQ(members(world, by_node(dealt)), (std::vector{0, 2, 1}));
        std::vector<int> sum = {1 << world.rank()};
        by_node(dealt).all_reduce(sum);
        EXPECT_EQ(sum[0], 7);
    });
}

TEST(by_node, a_mesh_over_the_launchers_order_keeps_it) {
    on_world(4, [](const Communicator& world) {
        const Communicator dealt = on_invented_nodes(world, [](int rank) { return rank % 2; });
        const Mesh mesh(dealt, {{reigen::tp, 4}});
        EXPECT_EQ(members(world, mesh[reigen::tp]), (std::vector{0, 1, 2, 3}));
    });
}

} // namespace by_node_test
