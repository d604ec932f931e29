#include <reigen/attention/ring_route.hpp>
#include <reigen/kernel/mask.hpp>
#include <reigen/layout/sequence.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ring_route_test {

using namespace reigen;

namespace {

RingRoute route_of(const Mask& mask, SequenceLayout layout, Index length, int ranks) {
    return RingRoute(ranks, [&](int rank, int block) {
        return may_see(mask, sequence_runs(layout, length, ranks, rank), 0,
                       sequence_runs(layout, length, ranks, block));
    });
}

/// The steps of all blocks in both turns: how many messages the ring sends.
int messages(const RingRoute& route) {
    int sum = 0;
    for (int block = 0; block < route.ranks(); ++block)
        sum += route.steps(Turn::onward, block) + route.steps(Turn::back, block);
    return sum;
}

} // namespace

TEST(ring_route, reaches_every_rank_that_needs_a_block_and_stops_at_one_that_does) {
    for (int ranks = 1; ranks <= 9; ++ranks)
        for (int pattern = 0; pattern < 512; pattern += 7) {
            const auto needs = [&](int rank, int block) { return ((pattern * (block + 1)) >> rank & 1) != 0; };
            const RingRoute route(ranks, needs);
            for (int block = 0; block < ranks; ++block) {
                std::set<int> reached = {block};
                for (const Turn turn : both_turns) {
                    const int steps = route.steps(turn, block);
                    for (int step = 1; step <= steps; ++step) {
                        const int rank = route.rank_at(turn, block, step);
                        EXPECT_EQ(route.block_at(turn, rank, step), block);
                        EXPECT_TRUE(reached.insert(rank).second) << "a rank is visited twice";
                        EXPECT_TRUE(step >= route.first_needed(turn, block) || !needs(rank, block));
                    }
                    if (steps > 0) {
                        EXPECT_TRUE(needs(route.rank_at(turn, block, steps), block));
                        EXPECT_TRUE(needs(route.rank_at(turn, block, route.first_needed(turn, block)), block));
                    } else {
                        EXPECT_EQ(route.first_needed(turn, block), 0);
                    }
                }
                for (int rank = 0; rank < ranks; ++rank)
                    EXPECT_TRUE(!needs(rank, block) || reached.count(rank) == 1);
            }
        }
}

TEST(ring_route, of_blocks_that_all_need_goes_onward_only) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
        const RingRoute route(ranks, [](int, int) { return true; });
        EXPECT_EQ(route.steps(Turn::onward), ranks - 1);
        EXPECT_EQ(route.steps(Turn::back), 0);
    }
}

TEST(ring_route, of_a_causal_contiguous_ring_never_wraps_round) {
    for (int ranks = 1; ranks <= 8; ++ranks)
        EXPECT_EQ(messages(route_of(Mask::causal(), SequenceLayout::contiguous, 40, ranks)), ranks * (ranks - 1) / 2);
}

// MATH: min(r, ceil(W / S)) hops on rank r, min(P - 1, ceil(W / S)) over all.
TEST(ring_route, of_a_window_is_as_long_as_the_window) {
    constexpr Index share = 5;
    for (int ranks = 1; ranks <= 8; ++ranks)
        for (Index window = 0; window <= 45; ++window) {
            const RingRoute route = route_of(Mask::window(window), SequenceLayout::contiguous, ranks * share, ranks);
            const int hops = int((window + share - 1) / share);
            EXPECT_EQ(route.steps(Turn::onward), std::min(ranks - 1, hops));
            EXPECT_EQ(route.steps(Turn::back), 0);
            for (int rank = 0; rank < ranks; ++rank) {
                int needed = 0;
                for (int block = 0; block < ranks; ++block)
                    needed += block != rank && route.needed(rank, block);
                EXPECT_EQ(needed, std::min(rank, hops));
            }
        }
}

TEST(ring_route, fetches_keys_ahead_the_short_way) {
    const RingRoute route = route_of(Mask::window(3, 3), SequenceLayout::contiguous, 40, 8);
    EXPECT_EQ(route.steps(Turn::onward), 1);
    EXPECT_EQ(route.steps(Turn::back), 1);
    EXPECT_EQ(messages(route), 14); // two neighbours each, but for the ends
}

TEST(ring_route, of_empty_blocks_is_nothing) {
    const RingRoute route = route_of(Mask::everything(), SequenceLayout::contiguous, 2, 5);
    EXPECT_EQ(messages(route), 2); // blocks 0 and 1 to each other; ranks 2, 3, 4 have neither queries nor keys
}

} // namespace ring_route_test
