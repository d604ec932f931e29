#include <reigen/core/runs.hpp>

#include <gtest/gtest.h>

namespace runs_test {

using reigen::Index;
using reigen::Run;
using reigen::Runs;

TEST(runs, adjoining_runs_are_joined) {
    const Runs runs = {{0, 1, 2}, {2, 1, 2}, {9, 3, 2}, {15, 3, 1}};
    EXPECT_EQ(runs.pieces().size(), 2U);
    EXPECT_EQ(runs.to_string(), "0-3 9-15/3");
    EXPECT_EQ(runs.size(), 7);
}

TEST(runs, equality_is_of_the_sequence_not_of_the_cut) {
    const Runs one_by_one = {{1, 1, 1}, {3, 1, 1}, {5, 1, 1}};
    EXPECT_EQ(one_by_one, (Runs{{1, 2, 3}}));
    EXPECT_NE(one_by_one, (Runs{{1, 2, 2}, {6, 1, 1}}));
    EXPECT_NE((Runs{{0, 1, 2}}), (Runs{{1, 1, 1}, {0, 1, 1}}));
}

TEST(runs, global_and_local_indices_are_inverse) {
    const Runs runs = {{0, 1, 2}, {6, 1, 2}, {20, 4, 3}};
    const std::vector<Index> want = {0, 1, 6, 7, 20, 24, 28};
    for (Index i = 0; i < runs.size(); ++i) {
        EXPECT_EQ(runs[i], want[std::size_t(i)]);
        EXPECT_EQ(runs.find(runs[i]), i);
    }
    EXPECT_FALSE(runs.find(2));
    EXPECT_FALSE(runs.find(22));
    EXPECT_FALSE(runs.find(32));
    EXPECT_EQ(runs.smallest(), 0);
    EXPECT_EQ(runs.largest(), 28);
}

TEST(runs, a_slice_is_what_lies_at_those_local_indices) {
    const Runs runs = {{0, 1, 2}, {6, 1, 2}, {20, 4, 3}};
    for (Index first = 0; first <= runs.size(); ++first)
        for (Index count = 0; first + count <= runs.size(); ++count) {
            const Runs slice = runs.slice(first, count);
            ASSERT_EQ(slice.size(), count);
            for (Index i = 0; i < count; ++i)
                EXPECT_EQ(slice[i], runs[first + i]);
        }
    EXPECT_THROW(runs.slice(3, 5), reigen::ShapeError);
}

TEST(runs, negative_parts_are_refused) {
    EXPECT_THROW(Runs::range(-1, 2), reigen::ArgumentError);
    EXPECT_THROW(Runs::range(0, -1), reigen::ArgumentError);
    EXPECT_THROW((Runs{{0, 0, 2}}), reigen::ArgumentError);
}

} // namespace runs_test
