#include <reigen/layout/overlap.hpp>

#include <gtest/gtest.h>

namespace overlap_test {

using namespace reigen;

namespace {

const std::vector<Runs> samples = {{},
                                   Runs::range(0, 12),
                                   Runs::range(3, 4),
                                   {{0, 1, 2}, {6, 1, 2}},
                                   {{6, 1, 2}, {0, 1, 2}},
                                   {{1, 2, 5}},
                                   {{0, 3, 4}, {1, 3, 3}},
                                   {{2, 4, 3}, {3, 4, 2}, {0, 1, 1}},
                                   {{5, 1, 1}}};

std::vector<Index> indices(const std::vector<Run>& pieces) {
    std::vector<Index> all;
    for (const Run& piece : pieces)
        for (Index i = 0; i < piece.count; ++i)
            all.push_back(piece[i]);
    return all;
}

} // namespace

TEST(overlap, pairs_the_local_indices_of_every_shared_one_once) {
    for (const Runs& a : samples)
        for (const Runs& b : samples) {
            const Overlap both = overlap(a, b);
            const auto in_a = indices(both.first);
            const auto in_b = indices(both.second);
            ASSERT_EQ(in_a.size(), in_b.size());
            EXPECT_EQ(both.size, Index(in_a.size()));
            std::vector<int> seen(12, 0);
            for (std::size_t i = 0; i < in_a.size(); ++i) {
                EXPECT_EQ(a[in_a[i]], b[in_b[i]]) << a.to_string() << " with " << b.to_string();
                ++seen[std::size_t(a[in_a[i]])];
            }
            for (Index global = 0; global < 12; ++global)
                EXPECT_EQ(seen[std::size_t(global)], a.find(global) && b.find(global) ? 1 : 0);
        }
}

TEST(overlap, packed_puts_one_after_the_other) {
    const Overlap packed = overlap({{0, 1, 2}, {6, 1, 2}}, Runs::range(1, 6)).packed();
    EXPECT_EQ(indices(packed.first), (std::vector<Index>{1, 2}));
    EXPECT_EQ(indices(packed.second), (std::vector<Index>{0, 1}));
}

TEST(overlap, without_keeps_what_the_other_does_not_hold) {
    EXPECT_EQ(without(Runs::range(0, 6), {{1, 2, 3}}), (Runs{{0, 2, 3}}));
    EXPECT_EQ(without({{6, 1, 2}, {0, 1, 2}}, {{7, 1, 1}}), (Runs{{6, 1, 1}, {0, 1, 2}}));
}

} // namespace overlap_test
