#include <reigen/layout/blocks.hpp>

#include <gtest/gtest.h>

namespace blocks_test {

using namespace reigen;

namespace {

std::string text(const Partition& partition) {
    std::string all;
    for (int rank = 0; rank < partition.ranks(); ++rank)
        all += (rank == 0 ? "" : " | ") + partition.runs(rank).to_string();
    return all;
}

} // namespace

// xllm#1616: gate|up split straight through the middle.
TEST(blocks, each_block_is_divided_by_itself) {
    EXPECT_EQ(text(NamedBlocks({{"gate", 2}, {"up", 2}}).partition(2)), "0 2 | 1 3");
    const NamedBlocks uneven = {{"gate", 3}, {"up", 3}};
    EXPECT_EQ(text(uneven.partition(2)), "0-1 3-4 | 2 5");
    EXPECT_EQ(uneven.place("up", 2, 0).first, 2);
    EXPECT_EQ(uneven.place("up", 2, 0).count, 2);
    EXPECT_EQ(uneven.place("up", 2, 1).first, 1);
    EXPECT_EQ(uneven.place("up", 2, 1).runs, Runs::range(2, 1));
    EXPECT_EQ(text(uneven.partition("up", 2)), "0-1 | 2");
    EXPECT_THROW(uneven.place("down", 2, 0), ArgumentError);
}

// ColossalAI#817: grouped heads by group and by block must be the same heads.
TEST(blocks, both_storage_orders_give_the_same_heads) {
    const HeadGroups groups = {4, 2};
    const NamedBlocks by_group = NamedBlocks::interleaved_heads(groups, 1);
    const NamedBlocks by_block = NamedBlocks::heads(groups, 1);
    const std::vector<std::string> group_order = {"q0", "q1", "k0", "v0", "q2", "q3", "k1", "v1"};
    const std::vector<std::string> block_order = {"q0", "q1", "q2", "q3", "k0", "k1", "v0", "v1"};
    const auto names = [](const std::vector<std::string>& order, const Runs& runs) {
        std::string all;
        for (Index i = 0; i < runs.size(); ++i)
            all += order[std::size_t(runs[i])] + ' ';
        return all;
    };
    EXPECT_EQ(names(group_order, by_group.partition(2).runs(0)), "q0 q1 k0 v0 ");
    for (int ranks = 1; ranks <= 5; ++ranks)
        for (int rank = 0; rank < ranks; ++rank)
            EXPECT_EQ(names(group_order, by_group.partition(ranks).runs(rank)),
                      names(block_order, by_block.partition(ranks).runs(rank)));
}

TEST(blocks, more_ranks_than_kv_heads_hold_the_head_their_queries_need) {
    const NamedBlocks qkv = NamedBlocks::heads({4, 2}, 2);
    EXPECT_EQ(text(qkv.partition("q", 4)), "0-1 | 2-3 | 4-5 | 6-7");
    EXPECT_EQ(text(qkv.partition("k", 4)), "0-1 | 0-1 | 2-3 | 2-3");
    EXPECT_EQ(text(qkv.partition(4)), "0-1 8-9 12-13 | 2-3 8-9 12-13 | 4-5 10-11 14-15 | 6-7 10-11 14-15");
    EXPECT_TRUE(qkv.partition(4).overlaps());
    EXPECT_FALSE(qkv.partition(2).overlaps());
    EXPECT_EQ(qkv.place("v", 4, 3).first, 4);
    EXPECT_EQ(qkv.place("v", 4, 3).runs, Runs::range(2, 2));
}

TEST(blocks, local_query_heads_share_local_kv_heads_evenly_and_rightly) {
    for (const HeadGroups groups : {HeadGroups{8, 4}, {8, 2}, {8, 1}, {3, 3}, {6, 3}, {12, 4}, {2, 1}, {9, 3}})
        for (int ranks = 1; ranks <= 10; ++ranks) {
            Index all = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const Range q = groups.query(ranks, rank);
                const Range kv = groups.kv(ranks, rank);
                EXPECT_EQ(q.first, all);
                all += q.count;
                if (q.count == 0) {
                    EXPECT_EQ(kv.count, 0);
                    continue;
                }
                ASSERT_EQ(q.count % kv.count, 0);
                for (Index h = 0; h < q.count; ++h)
                    EXPECT_EQ((q.first + h) / groups.group(), kv.first + h / (q.count / kv.count));
            }
            EXPECT_EQ(all, groups.query_heads);
            EXPECT_EQ(groups.kv_partition(ranks, 3).overlaps(), ranks > groups.kv_heads && groups.group() > 1);
        }
}

TEST(blocks, uneven_heads_keep_whole_groups) {
    EXPECT_EQ(text(HeadGroups{8, 4}.query_partition(3, 1)), "0-3 | 4-5 | 6-7");
    EXPECT_EQ(text(HeadGroups{8, 4}.kv_partition(3, 1)), "0-1 | 2 | 3");
    EXPECT_EQ(text(HeadGroups{2, 1}.query_partition(3, 1)), "0 | 1 | -");
    EXPECT_EQ(text(HeadGroups{2, 1}.kv_partition(3, 1)), "0 | 0 | -");
    EXPECT_THROW(HeadGroups({8, 3}).query(2, 0), ShapeError);
}

} // namespace blocks_test
