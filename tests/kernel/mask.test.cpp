#include <reigen/kernel/tile_mask.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace mask_test {

using reigen::Coverage;
using reigen::Index;
using reigen::Interval;
using reigen::Mask;
using reigen::Runs;

namespace {

bool sees(const Mask& mask, Index query, Index key, Index offset) {
    return mask.seen_from(query + offset).contains(key);
}

/// How many keys each query sees.
std::vector<Index> seen_keys(const Mask& mask, Index queries, Index keys) {
    std::vector<Index> result;
    for (Index q = 0; q < queries; ++q) {
        result.push_back(0);
        for (Index k = 0; k < keys; ++k)
            result.back() += sees(mask, q, k, keys - queries);
    }
    return result;
}

/// Positions of rank 1 of 3 in several layouts of 40 tokens, and something irregular.
std::vector<Runs> layouts() {
    return {Runs::range(13, 14),
            {{7, 1, 7}, {26, 1, 7}},
            {{1, 3, 13}},
            {{2, 1, 2}, {8, 1, 2}, {14, 1, 2}, {20, 1, 2}, {26, 1, 2}, {32, 1, 2}, {38, 1, 2}},
            {{30, 1, 5}, {0, 7, 4}}};
}

} // namespace

TEST(mask, of_unequal_lengths_aligns_the_last_query_with_the_last_key) {
    EXPECT_EQ(seen_keys(Mask::causal(), 2, 5), (std::vector<Index>{4, 5}));
    EXPECT_EQ(seen_keys(Mask::causal(), 5, 2), (std::vector<Index>{0, 0, 0, 1, 2}));
    EXPECT_EQ(seen_keys(Mask::everything(), 5, 2), (std::vector<Index>{2, 2, 2, 2, 2}));
}

TEST(mask, window_counts_keys_beside_the_querys_own) {
    EXPECT_EQ(seen_keys(Mask::window(0), 4, 4), (std::vector<Index>{1, 1, 1, 1}));
    EXPECT_EQ(seen_keys(Mask::window(2), 5, 5), (std::vector<Index>{1, 2, 3, 3, 3}));
    EXPECT_EQ(seen_keys(Mask::window(1, 1), 4, 4), (std::vector<Index>{2, 3, 3, 2}));
}

TEST(mask, bound_beyond_every_position_is_no_bound) {
    constexpr Index largest = std::numeric_limits<Index>::max();
    for (Index q = 0; q < 4; ++q)
        for (Index k = 0; k < 4; ++k)
            EXPECT_TRUE(sees(Mask::window(largest, largest), q, k, -3));
}

TEST(mask, negative_bound_is_refused) {
    EXPECT_THROW(reigen::detail::check_mask(Mask{-1, 0}, "attention"), reigen::ArgumentError);
    EXPECT_THROW(reigen::detail::check_mask(Mask{std::nullopt, -1}, "attention"), reigen::ArgumentError);
    EXPECT_NO_THROW(reigen::detail::check_mask(Mask::causal(), "attention"));
}

TEST(mask, says_that_runs_may_see_each_other_wherever_they_do) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(3), Mask::window(0, 2)})
        for (const Runs& queries : layouts())
            for (const Runs& keys : layouts())
                for (const Index offset : {-30, 0, 30}) {
                    bool any = false;
                    for (Index i = 0; i < queries.size(); ++i)
                        for (Index j = 0; j < keys.size(); ++j)
                            any = any || sees(mask, queries[i], keys[j], offset);
                    EXPECT_TRUE(!any || may_see(mask, queries, offset, keys));
                }
    EXPECT_FALSE(may_see(Mask::causal(), Runs::range(0, 4), 0, Runs::range(4, 4)));
    EXPECT_FALSE(may_see(Mask::window(3), Runs::range(8, 4), 0, Runs::range(0, 5)));
    EXPECT_TRUE(may_see(Mask::window(3), Runs::range(8, 4), 0, Runs::range(0, 6)));
    EXPECT_FALSE(may_see(Mask::causal(), Runs{{0, 1, 2}, {14, 1, 2}}, 0, Runs{}));
}

TEST(tile_mask, is_what_each_query_sees_of_each_key) {
    using reigen::detail::PanelSight;
    using reigen::detail::RunWalker;
    using reigen::detail::TileMask;
    constexpr int rows = reigen::detail::panel_rows<float>;
    std::vector<float> memory(std::size_t(TileMask<float>::size), -1.0f);
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(3), Mask::window(0, 2)})
        for (const Runs& queries : layouts())
            for (const Runs& keys : layouts()) {
                const Index used = std::min<Index>(rows, queries.size());
                const PanelSight<rows> sight(mask, used, [&](Index i) { return queries[i]; });
                RunWalker walker(keys);
                walker.next_range(1); // a tile that starts inside a run
                TileMask<float> tile(memory.data());
                const Coverage coverage = tile.look(sight, walker, keys.size() - 1);
                Index seen = 0;
                for (Index k = 1; k < keys.size(); ++k)
                    for (Index i = 0; i < used; ++i) {
                        const bool want = sees(mask, queries[i], keys[k], 0);
                        seen += want;
                        EXPECT_EQ(tile.key(k - 1)[i], want ? 1.0f : 0.0f);
                        EXPECT_TRUE(!want || (k - 1 >= tile.first_key() && k - 1 < tile.end_key()));
                    }
                EXPECT_EQ(coverage == Coverage::empty, seen == 0);
                EXPECT_EQ(coverage == Coverage::full, seen == used * (keys.size() - 1));
                const Coverage by_range = sight.cover(walker.next_range(keys.size() - 1));
                EXPECT_TRUE(by_range == coverage || by_range == Coverage::mixed);
            }
}

} // namespace mask_test
