#include <reigen/layout/sequence.hpp>

#include <gtest/gtest.h>

namespace sequence_test {

using namespace reigen;

namespace {

std::string text(SequenceLayout layout, Index length, int ranks, Index stripe = 1) {
    std::string all;
    for (int rank = 0; rank < ranks; ++rank)
        all += (rank == 0 ? "" : " | ") + sequence_runs(layout, length, ranks, rank, stripe).to_string();
    return all;
}

} // namespace

// Megatron#560: positions under zigzag.
TEST(sequence, zigzag_pairs_an_early_chunk_with_a_late_one) {
    EXPECT_EQ(text(SequenceLayout::zigzag, 8, 2), "0-1 6-7 | 2-5");
    EXPECT_EQ(text(SequenceLayout::zigzag, 10, 2), "0-2 8-9 | 3-7");
    EXPECT_EQ(text(SequenceLayout::zigzag, 12, 3), "0-1 10-11 | 2-3 8-9 | 4-7");
}

// pytorch#159706: fewer positions than chunks.
TEST(sequence, shorter_than_its_chunks_leaves_ranks_empty) {
    EXPECT_EQ(text(SequenceLayout::zigzag, 2, 4), "0 | 1 | - | -");
    EXPECT_EQ(text(SequenceLayout::zigzag, 2, 2), "0 | 1");
    EXPECT_EQ(text(SequenceLayout::striped, 2, 4), "0 | 1 | - | -");
    EXPECT_EQ(text(SequenceLayout::contiguous, 2, 4), "0 | 1 | - | -");
    EXPECT_EQ(text(SequenceLayout::striped, 0, 2), "- | -");
}

TEST(sequence, stripes_go_round) {
    EXPECT_EQ(text(SequenceLayout::striped, 8, 2), "0-6/2 | 1-7/2");
    EXPECT_EQ(text(SequenceLayout::striped, 7, 3), "0-6/3 | 1-4/3 | 2-5/3");
    EXPECT_EQ(text(SequenceLayout::striped, 11, 2, 2), "0-1 4-5 8-9 | 2-3 6-7 10");
    EXPECT_EQ(text(SequenceLayout::striped, 8, 2, 4), "0-3 | 4-7");
}

TEST(sequence, block_stripes_follow_the_formula) {
    const Index t = 3;
    const int ranks = 4;
    for (int rank = 0; rank < ranks; ++rank) {
        const Runs runs = sequence_runs(SequenceLayout::striped, 48, ranks, rank, t);
        ASSERT_EQ(runs.size(), 12);
        for (Index i = 0; i < runs.size(); ++i)
            EXPECT_EQ(runs[i], (i / t) * ranks * t + rank * t + i % t);
    }
}

// TransformerEngine#3331: lengths computed as length / ranks.
TEST(sequence, every_position_is_on_exactly_one_rank) {
    using enum SequenceLayout;
    for (const auto& [layout, stripe] :
         {std::pair<SequenceLayout, Index>{contiguous, 1}, {zigzag, 1}, {striped, 1}, {striped, 3}, {striped, 1000}})
        for (Index length : {0, 1, 2, 3, 7, 8, 23, 698})
            for (int ranks = 1; ranks <= 5; ++ranks) {
                std::vector<Runs> runs;
                for (int rank = 0; rank < ranks; ++rank)
                    runs.push_back(sequence_runs(layout, length, ranks, rank, stripe));
                EXPECT_FALSE(Partition::of_runs(length, runs).overlaps());
            }
}

TEST(sequence, one_rank_holds_the_sequence_in_order) {
    for (const auto layout : {SequenceLayout::contiguous, SequenceLayout::zigzag, SequenceLayout::striped})
        EXPECT_EQ(sequence_runs(layout, 9, 1, 0), Runs::range(0, 9));
    EXPECT_EQ(sequence_runs(SequenceLayout::striped, 9, 1, 0, 2), Runs::range(0, 9));
}

} // namespace sequence_test
