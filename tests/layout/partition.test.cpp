#include <reigen/layout/partition.hpp>

#include <gtest/gtest.h>

#include <string>

namespace partition_test {

using namespace reigen;

namespace {

/// "0-3 | 4-6": what each rank holds.
std::string text(const Partition& partition) {
    std::string all;
    for (int rank = 0; rank < partition.ranks(); ++rank)
        all += (rank == 0 ? "" : " | ") + partition.runs(rank).to_string();
    return all;
}

} // namespace

TEST(partition, uneven_totals_give_the_first_ranks_one_more) {
    EXPECT_EQ(text(Partition::balanced(14, 4)), "0-3 | 4-7 | 8-10 | 11-13");
    EXPECT_EQ(text(Partition::balanced(5, 3)), "0-1 | 2-3 | 4");
    EXPECT_EQ(text(Partition::balanced(1, 4)), "0 | - | - | -");
}

TEST(partition, grains_stay_whole_and_the_last_may_be_short) {
    EXPECT_EQ(text(Partition::balanced(12, 2, 4)), "0-7 | 8-11");
    EXPECT_EQ(text(Partition::balanced(14, 4, 4)), "0-3 | 4-7 | 8-11 | 12-13");
    EXPECT_EQ(text(Partition::balanced(6, 3, 4)), "0-3 | 4-5 | -");
}

// DeepSpeed#8316: sizes remembered from another call.
TEST(partition, depends_on_its_arguments_alone) {
    for (int repeat = 0; repeat < 2; ++repeat) {
        EXPECT_EQ(Partition::balanced(12, 4).counts(), (std::vector<Index>{3, 3, 3, 3}));
        EXPECT_EQ(Partition::balanced(16, 4).counts(), (std::vector<Index>{4, 4, 4, 4}));
    }
    for (const Index grain : {1, 4})
        for (Index n = 0; n <= 64; ++n)
            for (int ranks = 1; ranks <= 9; ++ranks) {
                const Partition p = Partition::balanced(n, ranks, grain);
                Index next = 0;
                for (int rank = 0; rank < ranks; ++rank) {
                    EXPECT_EQ(p.runs(rank), Runs::range(next, p.count(rank)));
                    EXPECT_TRUE(p.count(rank) % grain == 0 || next + p.count(rank) == n);
                    const Index units = (p.count(rank) + grain - 1) / grain;
                    const Index all_units = (n + grain - 1) / grain;
                    EXPECT_EQ(units, all_units / ranks + (rank < all_units % ranks ? 1 : 0));
                    next += p.count(rank);
                }
                EXPECT_EQ(next, n);
            }
}

// hypre#1599: widths that the user chose.
TEST(partition, of_sizes_follows_the_callers_widths) {
    EXPECT_EQ(text(Partition::of_sizes({2, 3, 4, 5})), "0-1 | 2-4 | 5-8 | 9-13");
    EXPECT_EQ(text(Partition::of_sizes({0, 3, 0})), "- | 0-2 | -");
    EXPECT_EQ(Partition::of_sizes({2, 3, 4, 5}).size(), 14);
    EXPECT_THROW(Partition::of_sizes({2, -1}), ShapeError);
}

TEST(partition, of_runs_may_hold_anything_in_any_order_as_long_as_nothing_is_missing) {
    const Partition zigzag = Partition::of_runs(8, {{{0, 1, 2}, {6, 1, 2}}, {{4, 1, 2}, {2, 1, 2}}});
    EXPECT_EQ(text(zigzag), "0-1 6-7 | 4-5 2-3");
    EXPECT_FALSE(zigzag.overlaps());
    EXPECT_THROW(Partition::of_runs(4, {{{0, 1, 2}}, {{3, 1, 1}}}), ShapeError);
    EXPECT_THROW(Partition::of_runs(4, {{{0, 1, 4}}, {{3, 1, 2}}}), ShapeError);
    EXPECT_THROW(Partition::of_runs(4, {{{0, 1, 2}, {1, 1, 3}}}), ShapeError);
    EXPECT_THROW(Partition::of_runs(4, {}), ArgumentError);
}

TEST(partition, what_several_ranks_hold_is_owned_by_the_first) {
    const Partition p = Partition::of_runs(6, {{{0, 1, 3}}, {{4, 1, 2}, {1, 1, 2}}, {{2, 1, 2}}});
    EXPECT_TRUE(p.overlaps());
    EXPECT_EQ(p.owned(0), Runs::range(0, 3));
    EXPECT_EQ(p.owned(1), Runs::range(4, 2));
    EXPECT_EQ(p.owned(2), Runs::range(3, 1));
}

TEST(partition, equality_is_of_what_each_rank_holds) {
    EXPECT_EQ(Partition::balanced(5, 2), Partition::of_sizes({3, 2}));
    EXPECT_NE(Partition::balanced(5, 2), Partition::of_sizes({2, 3}));
    EXPECT_NE(Partition::balanced(5, 2), Partition::balanced(5, 3));
    EXPECT_NE(Partition::whole(5), Partition::whole(6));
    EXPECT_EQ(Partition().size(), 0);
}

} // namespace partition_test
