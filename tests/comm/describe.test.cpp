#include <reigen/comm/describe.hpp>

#include "comm/invented_nodes.hpp"
#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace describe_test {

using reigen::detail::Place;

TEST(describe, says_the_same_on_every_rank_with_a_line_for_each) {
    on_every_backend([](const Communicator& world) {
        const std::string text = describe(world);
        for (const std::string& theirs : reigen::all_gather_texts(world, text))
            EXPECT_EQ(theirs, text);
        EXPECT_EQ(text.find(reigen::concat(world.size(), world.size() == 1 ? " rank: " : " ranks: ")), 0U) << text;
        for (int rank = 0; rank < world.size(); ++rank)
            EXPECT_NE(text.find(reigen::concat("\n  rank ", rank, "  ")), std::string::npos) << text;
        const auto lines = std::count(text.begin(), text.end(), '\n');
        EXPECT_GE(lines, 1 + world.size());
    });
}

TEST(describe, a_place_survives_its_journey) {
    for (const Place& place :
         {Place{"host-1", {0, 1, 2, 7}, {0, 1}, {0, 1, 2, 7, 8}, 11, {1, 1, 0}}, Place{"h", {3}, {}, {}, -1, {}},
          Place{"h", {}, {}, {}, -1, {}}, Place{"h", {}, {2}, {}, -1, {1}}}) {
        const Place other = reigen::detail::place_of_text(to_text(place));
        EXPECT_EQ(other.host, place.host);
        EXPECT_EQ(other.cores, place.cores);
        EXPECT_EQ(other.nodes, place.nodes);
        EXPECT_EQ(other.share_of, place.share_of);
        EXPECT_EQ(other.launched, place.launched);
        EXPECT_EQ(other.pages, place.pages);
    }
}

TEST(describe, says_who_chose_a_ranks_cores) {
    EXPECT_EQ(to_string(Place{"h", {0, 1, 2, 7, 9, 10}, {0}, {}, -1, {}}),
              "h  cores 0-2, 7, 9-10  memory node 0  as launched");
    EXPECT_EQ(to_string(Place{"h", {2}, {0, 1}, {0, 1, 2, 3}, -1, {}}),
              "h  core 2  memory nodes 0-1  its share of 0-3");
}

TEST(describe, warns_of_cores_that_ranks_share) {
    using reigen::detail::shared_cores;
    EXPECT_EQ(shared_cores({{"a", {0, 1}, {}, {}, -1, {}}, {"a", {0, 1}, {}, {}, -1, {}}, {"b", {0}, {}, {}, -1, {}}}),
              "");
    EXPECT_EQ(
        shared_cores({{"a", {0, 1}, {}, {}, -1, {}}, {"a", {0, 1}, {}, {}, -1, {}}, {"a", {0, 1}, {}, {}, -1, {}}}),
        "warning: 3 ranks share 2 cores of a\n");
    EXPECT_EQ(shared_cores({{"a", {0}, {}, {}, -1, {}},
                            {"a", {0}, {}, {}, -1, {}},
                            {"b", {0}, {}, {}, -1, {}},
                            {"b", {1}, {}, {}, -1, {}}}),
              "warning: ranks 0 and 1 are both bound to core 0 of a\nwarning: 2 ranks share 1 cores of a\n");
}

TEST(describe, gives_the_launchers_numbers_where_they_differ) {
    using reigen::detail::numbered_otherwise;
    const auto places = [](const std::vector<int>& launched) {
        std::vector<Place> result;
        for (const int number : launched)
            result.push_back({"h", {}, {}, {}, number, {}});
        return result;
    };
    EXPECT_TRUE(numbered_otherwise(places({0, 2, 1})));
    EXPECT_TRUE(numbered_otherwise(places({3})));
    EXPECT_FALSE(numbered_otherwise(places({0, 1, 2})));
    EXPECT_FALSE(numbered_otherwise(places({-1, -1})));
    EXPECT_FALSE(numbered_otherwise(places({-1})));
    EXPECT_FALSE(numbered_otherwise(places({1, 1, 1}))); // threads of one process
}

TEST(describe, warns_of_memory_that_lies_beside_other_cores) {
    using reigen::detail::distant_memory;
    EXPECT_EQ(distant_memory({{"a", {0}, {0}, {}, -1, {0, 0, 0}}, {"a", {1}, {1}, {}, -1, {1, 1, 0}}}), "");
    EXPECT_EQ(distant_memory({{"a", {0}, {0}, {}, -1, {}}, {"a", {1}, {}, {}, -1, {1}}}),
              ""); // the system does not tell
    EXPECT_EQ(distant_memory({{"a", {0, 8}, {0, 1}, {}, -1, {0, 1, 1}}}), "");
    EXPECT_EQ(distant_memory({{"a", {0}, {0}, {}, -1, {1, 0}}, {"a", {1}, {0}, {}, -1, {1, 0, 1, 2}}}),
              "warning: rank 1 has 75% of its long Buffers on memory nodes 1-2, its cores are beside 0\n");
    EXPECT_EQ(distant_memory({{"a", {0}, {1}, {}, -1, {0}}}),
              "warning: rank 0 has 100% of its long Buffers on memory node 0, its cores are beside 1\n");
}

TEST(describe, says_of_each_axis_of_a_mesh_whether_it_leaves_a_machine) {
    const auto text = [](const Communicator& world, const std::vector<reigen::MeshAxis>& axes) {
        return describe(reigen::Mesh(world, axes));
    };
    on_world(4, [&](const Communicator& world) {
        using reigen::cp, reigen::dp, reigen::tp;
        EXPECT_EQ(text(world, {{cp, 2}, {tp, 2}}), "mesh cp=2 x tp=2 of 4 ranks on 1 machine\n");
        const Communicator dealt = on_invented_nodes(world, [](int rank) { return rank % 2; });
        EXPECT_EQ(text(dealt, {{cp, 2}, {dp, 1}, {tp, 2}}),
                  "mesh cp=2 x dp=1 x tp=2 of 4 ranks on 2 machines\n"
                  "  cp=2  inside a machine\n"
                  "  tp=2  over 2 machines; a ring crosses between them 2 times\n"
                  "warning: ranks are not numbered one machine after the other, by_node(world) does that\n");
        EXPECT_EQ(text(dealt, {{cp, 4}}),
                  "mesh cp=4 of 4 ranks on 2 machines\n"
                  "  cp=4  over 2 machines; a ring crosses between them 4 times\n"
                  "warning: ranks are not numbered one machine after the other, by_node(world) does that\n");
        EXPECT_EQ(text(by_node(dealt), {{cp, 4}}), "mesh cp=4 of 4 ranks on 2 machines\n"
                                                   "  cp=4  over 2 machines; a ring crosses between them 2 times\n");
        EXPECT_EQ(text(by_node(dealt), {{cp, 2}, {tp, 2}}),
                  "mesh cp=2 x tp=2 of 4 ranks on 2 machines\n"
                  "  cp=2  over 2 machines; a ring crosses between them 2 times\n"
                  "  tp=2  inside a machine\n");
    });
    on_world(3, [&](const Communicator& world) {
        const Communicator uneven = on_invented_nodes(world, [](int rank) { return rank == 2 ? 2 : 0; });
        EXPECT_EQ(text(uneven, {{reigen::cp, 3}}), "mesh cp=3 of 3 ranks on 2 machines\n"
                                                   "  cp=3  over 2 machines; a ring crosses between them 2 times\n");
    });
}

} // namespace describe_test
