#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace mesh_test {

using reigen::ArgumentError;
using reigen::Axes;
using reigen::cp;
using reigen::dp;
using reigen::ep;
using reigen::Mesh;
using reigen::pp;
using reigen::tp;

namespace {

/// The world ranks of this rank's group over some axes, in group order.
std::vector<int> members(const Mesh& mesh, Axes axes) {
    std::vector<int> ranks(std::size_t(mesh[axes].size()));
    mesh[axes].all_gather(std::vector<int>{mesh.world().rank()}, ranks);
    return ranks;
}

} // namespace

// vllm#2528
TEST(mesh, the_groups_of_a_square_are_its_rows_and_its_columns) {
    on_mesh({{dp, 2}, {tp, 2}}, [](const Mesh& mesh) {
        const int rank = mesh.world().rank();
        EXPECT_EQ(members(mesh, tp), (rank < 2 ? std::vector{0, 1} : std::vector{2, 3}));
        EXPECT_EQ(members(mesh, dp), (rank % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3}));
        EXPECT_EQ(members(mesh, dp | tp), (std::vector{0, 1, 2, 3}));
        std::vector<int> sum = {1 << rank};
        mesh[dp].all_reduce(sum);
        EXPECT_EQ(sum[0], rank % 2 == 0 ? 0b0101 : 0b1010);
    });
}

TEST(mesh, a_joint_group_nests_its_axes_in_mesh_order_however_it_is_asked_for) {
    on_mesh({{tp, 2}, {cp, 2}, {dp, 1}}, [](const Mesh& mesh) { // tp is the slow axis here
        const int rank = mesh.world().rank();
        EXPECT_EQ(mesh.rank(tp), rank / 2);
        EXPECT_EQ(mesh.rank(cp), rank % 2);
        EXPECT_EQ(mesh.rank(cp | tp), rank);
        EXPECT_EQ(mesh.rank(tp | cp | dp | ep), rank);
        EXPECT_EQ(members(mesh, cp | tp), (std::vector{0, 1, 2, 3}));
        EXPECT_EQ(mesh[cp | tp].rank(), rank);
    });
}

TEST(mesh, absent_axes_have_one_rank) {
    on_mesh({{tp, 3}}, [](const Mesh& mesh) {
        EXPECT_EQ(mesh.size(dp), 1);
        EXPECT_EQ(mesh.size(dp | tp), 3);
        EXPECT_EQ(mesh.rank(ep), 0);
        EXPECT_EQ(mesh[pp].size(), 1);
        EXPECT_EQ(mesh[Axes::none].size(), 1);
        EXPECT_EQ(mesh[dp | tp], mesh[tp]);
        std::vector<float> alone = {float(mesh.world().rank())};
        mesh[cp].all_reduce(alone);
        EXPECT_EQ(alone[0], float(mesh.world().rank()));
    });
}

TEST(mesh, coordinates_of_a_groups_members_count_along_the_axes_asked_for) {
    on_mesh({{dp, 2}, {tp, 2}}, [](const Mesh& mesh) {
        for (int member = 0; member < 4; ++member) {
            EXPECT_EQ(mesh.coordinate(dp, dp | tp, member), member / 2);
            EXPECT_EQ(mesh.coordinate(tp, dp | tp, member), member % 2);
            EXPECT_EQ(mesh.coordinate(dp | tp, dp | tp, member), member);
        }
        for (int member = 0; member < 2; ++member) {
            EXPECT_EQ(mesh.coordinate(dp, tp, member), mesh.rank(dp)); // an axis outside the group
            EXPECT_EQ(mesh.coordinate(dp | tp, tp, member), 2 * mesh.rank(dp) + member);
            EXPECT_EQ(mesh.coordinate(dp | tp, dp, member), 2 * member + mesh.rank(tp));
        }
        EXPECT_THROW(mesh.coordinate(dp, tp, 2), ArgumentError);
        EXPECT_THROW(mesh.coordinate(dp, tp, -1), ArgumentError);
    });
}

TEST(mesh, groups_are_those_of_all_ranks) {
    using Groups = std::vector<std::vector<int>>;
    on_mesh({{dp, 2}, {tp, 2}}, [](const Mesh& mesh) {
        EXPECT_EQ(mesh.groups(tp), (Groups{{0, 1}, {2, 3}}));
        EXPECT_EQ(mesh.groups(dp), (Groups{{0, 2}, {1, 3}}));
        EXPECT_EQ(mesh.groups(dp | tp), (Groups{{0, 1, 2, 3}}));
        EXPECT_EQ(mesh.groups(ep), (Groups{{0}, {1}, {2}, {3}}));
        EXPECT_EQ(mesh.groups(dp)[std::size_t(mesh.rank(tp))], members(mesh, dp));
    });
}

TEST(mesh, is_refused_with_both_numbers_where_its_sizes_do_not_make_the_world) {
    on_world(4, [](const Communicator& world) {
        const auto words = words_of<ArgumentError>([&] { Mesh(world, {{dp, 3}, {tp, 2}}); });
        EXPECT_EQ(words, "Mesh: dp=3 x tp=2 makes 6 ranks, the communicator has 4");
        EXPECT_NE(words_of<ArgumentError>([&] { Mesh(world, {}); }).find("no axes makes 1 ranks"), std::string::npos);
        EXPECT_NE(words_of<ArgumentError>([&] { Mesh(world, {{tp, 2}, {tp, 2}}); }).find("tp is given twice"),
                  std::string::npos);
        EXPECT_THROW(Mesh(world, {{Axes(64), 4}}), ArgumentError);
        EXPECT_THROW(Mesh(world, {{dp | tp, 4}}), ArgumentError);
        EXPECT_THROW(Mesh(world, {{Axes::none, 4}}), ArgumentError);
        EXPECT_THROW(Mesh(world, {{dp, -2}, {tp, -2}}), ArgumentError);
        EXPECT_THROW(Mesh(world, {{dp, 0}, {tp, 4}}), ArgumentError);
        world.barrier(); // nobody has sent anything yet
    });
}

TEST(mesh, equality_is_of_the_arrangement) {
    EXPECT_EQ(Mesh(), Mesh());
    EXPECT_EQ(Mesh().size(dp | tp), 1);
    on_world(2, [](const Communicator& world) {
        const Mesh mesh(world, {{tp, 2}});
        const Mesh copy = mesh;
        EXPECT_EQ(mesh, copy);
        EXPECT_EQ(mesh, Mesh(world, {{tp, 2}}));
        EXPECT_NE(mesh, Mesh(world, {{dp, 2}}));
        EXPECT_NE(mesh, Mesh(world.split(0, world.rank()), {{tp, 2}}));
        EXPECT_NE(mesh, Mesh());
    });
}

} // namespace mesh_test
