#include "comm/trace/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace trace_waits_test {

using namespace trace_cases;
using reigen::Buffer;
using reigen::Trace;

// Where a rank's time goes: computing, moving, and waiting for ranks that come late.

TEST(trace_waits, time_is_divided_into_computing_moving_and_waiting) {
    on_every_world([](const Communicator& ranks) {
        const auto start = reigen::detail::Clock::now();
        const Trace trace(ranks);
        std::vector<float> values(5000, 1);
        for (int k = 0; k < 5; ++k) {
            sleep_ms(4);
            trace.world().all_reduce(values);
            auto pending = trace.world().start_all_gather(Buffer<int>::zeros(3), Buffer<int>(3 * ranks.size()));
            sleep_ms(4);
            pending.wait();
        }
        const auto summary = trace.summary();
        const double outer = reigen::detail::seconds_since(start);
        const auto& mine = summary.ranks[std::size_t(ranks.rank())];
        EXPECT_NEAR(mine.seconds, mine.computing + mine.moving + mine.waiting, 1e-8);
        EXPECT_LE(mine.seconds, outer);
        EXPECT_GE(mine.computing, 0.040);
        EXPECT_GE(mine.seconds, 0.040);
        TraceCost all;
        for (const auto& row : summary.rows)
            all += row.ranks[std::size_t(ranks.rank())];
        EXPECT_NEAR(all.moving, mine.moving, 1e-8);
        EXPECT_NEAR(all.waiting, mine.waiting, 1e-8);
        EXPECT_EQ(summary.unmatched, 0);
    });
}

namespace {

/// One all-reduce to which one rank comes 50 ms late; what each rank is to have waited, by clocks of the test's own.
double late_all_reduce(const Communicator& world, const Communicator& ranks, int late) {
    world.barrier();
    if (world.rank() == late)
        sleep_ms(50);
    const auto since_boot = reigen::detail::Clock::now().time_since_epoch();
    const std::vector<double> start = {std::chrono::duration<double>(since_boot).count()};
    std::vector<float> values(7);
    world.all_reduce(values);
    std::vector<double> starts(std::size_t(ranks.size()));
    ranks.all_gather(start, starts);
    return std::ranges::max(starts) - start[0];
}

/// Ranks 1 and then 0 come late.
void expect_waits_for_the_late(const Trace& trace, const Communicator& ranks, double tolerance) {
    const int rank = ranks.rank();
    const double first = late_all_reduce(trace.world(), ranks, 1);
    const auto after_first = trace.summary();
    EXPECT_NEAR(cost(after_first, "all_reduce", "world", rank).waiting, first, tolerance);
    EXPECT_TRUE(rank == 1 ? first == 0 : first >= 0.02) << first;
    const double second = late_all_reduce(trace.world(), ranks, 0);
    const auto summary = trace.summary();
    EXPECT_NEAR(cost(summary, "all_reduce", "world", rank).waiting, first + second, 2 * tolerance);
    EXPECT_EQ(summary.unmatched, 0);
    EXPECT_GE(summary.ranks[1].waited_for, 0.045); // by two ranks, who came at once
    EXPECT_GE(summary.ranks[0].waited_for, 0.045);
    EXPECT_LE(summary.ranks[2].waited_for, summary.ranks[1].waited_for / 2);
}

} // namespace

TEST(trace_waits, who_comes_late_makes_the_others_wait) {
    on_world(3, [](const Communicator& ranks) {
        const Trace trace(ranks);
        expect_waits_for_the_late(trace, ranks, 0.005);
    });
}

TEST(trace_waits, clocks_that_differ_by_seconds_change_nothing) {
    on_world(3, [](const Communicator& ranks) {
        const Trace trace(ranks, {.clock_shift = Index(3'000'000'000) * (1 - ranks.rank())});
        expect_waits_for_the_late(trace, ranks, 0.010); // as well as the clocks can be compared
    });
}

TEST(trace_waits, a_message_waits_for_its_other_side) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks);
        trace.world().barrier();
        std::vector<int> values(3);
        if (ranks.rank() == 0) {
            sleep_ms(50);
            trace.world().send(values, 1, 4);
            trace.world().send(values, 1, 4);
            trace.world().send(values, 1, 5);
        } else {
            auto last = trace.world().start_receive(Buffer<int>(3), 0, 5);
            trace.world().receive(values, 0, 4);
            trace.world().receive(values, 0, 4);
            last.wait();
        }
        const auto summary = trace.summary();
        EXPECT_GE(cost(summary, "receive", "world", 1).waiting, 0.045);
        EXPECT_EQ(cost(summary, "receive", "world", 1).count, 3);
        EXPECT_EQ(cost(summary, "receive", "world", 0).count, 0);
        EXPECT_LE(cost(summary, "send", "world", 0).waiting, 0.020); // the first one's side has come long since
        EXPECT_EQ(cost(summary, "send", "world", 0).bytes, 36);
        EXPECT_EQ(summary.unmatched, 0);
    });
}

TEST(trace_waits, who_computes_meanwhile_waits_only_for_who_comes_later) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks);
        const auto& world = trace.world();
        const auto waiting = [&] { return cost(trace.summary(), "all_reduce", "world", 0).waiting; };
        std::vector<int> note(1);
        world.barrier();
        if (ranks.rank() == 1)
            sleep_ms(20);
        auto early = world.start_all_reduce(Buffer<float>::zeros(8));
        ranks.rank() == 1 ? ranks.send(note, 0) : ranks.receive(note, 1);
        early.wait(); // the other one came while this was on its way
        EXPECT_LE(waiting(), 0.001);

        if (ranks.rank() == 1) {
            ranks.receive(note, 0);
            sleep_ms(100);
            world.start_all_reduce(Buffer<float>::zeros(8)).wait();
            waiting();
            return;
        }
        auto late = world.start_all_reduce(Buffer<float>::zeros(8));
        sleep_ms(40);
        ranks.send(note, 1);
        const auto start = reigen::detail::Clock::now();
        late.wait();
        const double waited = reigen::detail::seconds_since(start);
        const double counted = waiting();
        EXPECT_GE(counted, 0.050);
        EXPECT_LE(counted, waited + 0.001); // not the time before the wait
    });
}

} // namespace trace_waits_test
