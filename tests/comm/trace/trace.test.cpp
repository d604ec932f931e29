#include "comm/values.hpp"

#include <reigen/comm/trace.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace trace_test {

using reigen::Buffer;
using reigen::cp;
using reigen::dp;
using reigen::Mesh;
using reigen::TimeoutError;
using reigen::tp;
using reigen::Trace;
using reigen::TraceCost;
using reigen::TraceScope;
using reigen::TraceStep;
using reigen::TraceSummary;

namespace {

void sleep_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// What a rank did in one row; nothing where there is no such row.
TraceCost cost(const TraceSummary& summary, const std::string& operation, const std::string& over, int rank) {
    const auto* const row = summary.find(operation, over);
    return row != nullptr ? row->ranks[std::size_t(rank)] : TraceCost{};
}

/// All numbers of a summary, to be compared.
std::string all_of(const TraceSummary& summary) {
    std::ostringstream text;
    text << to_string(summary) << summary.unmatched;
    for (const auto& row : summary.rows)
        for (const auto& rank : row.ranks)
            text << ' ' << rank.count << ' ' << rank.messages << ' ' << rank.bytes << ' ' << rank.moving << ' '
                 << rank.waiting;
    return text.str();
}

} // namespace

TEST(trace, time_is_divided_into_computing_moving_and_waiting) {
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

TEST(trace, the_summary_is_the_same_on_every_rank) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        for (int k = 0; k < 3; ++k) {
            const TraceStep step;
            trace.world().barrier();
        }
        if (ranks.rank() == 0)
            const TraceScope only_here("a scope of rank 0");
        const std::string mine = all_of(trace.summary());
        for (const std::string& text : reigen::detail::gather_texts(ranks, mine))
            EXPECT_EQ(text, mine);
        EXPECT_NE(mine.find("a scope of rank 0"), std::string::npos) << mine;
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

TEST(trace, who_comes_late_makes_the_others_wait) {
    on_world(3, [](const Communicator& ranks) {
        const Trace trace(ranks);
        expect_waits_for_the_late(trace, ranks, 0.005);
    });
}

TEST(trace, clocks_that_differ_by_seconds_change_nothing) {
    on_world(3, [](const Communicator& ranks) {
        const Trace trace(ranks, {.clock_shift = Index(3'000'000'000) * (1 - ranks.rank())});
        expect_waits_for_the_late(trace, ranks, 0.010); // as well as the clocks can be compared
    });
}

TEST(trace, a_message_waits_for_its_other_side) {
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

TEST(trace, who_computes_meanwhile_waits_only_for_who_comes_later) {
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

TEST(trace, groups_go_by_the_names_of_their_axes) {
    on_mesh({{dp, 2}, {cp, 1}, {tp, 2}}, [](const Mesh& plain) {
        const Trace trace(plain.world());
        const Mesh mesh(trace.world(), plain.axes());
        std::vector<float> values(10);
        mesh[tp].all_reduce(values);
        mesh[dp | cp].all_reduce(values);
        mesh[dp | tp].broadcast(values, 0);
        trace.world().split(0, 0, "pairs").barrier();
        trace.world().split(0, 0).barrier();
        mesh[tp].split(0, 0).barrier();
        const auto summary = trace.summary();
        for (int rank = 0; rank < 4; ++rank) {
            EXPECT_EQ(cost(summary, "all_reduce", "tp", rank).count, 1);
            EXPECT_EQ(cost(summary, "all_reduce", "dp", rank).count, 1); // cp has one rank
            EXPECT_EQ(cost(summary, "broadcast", "dp|tp", rank).count, 1);
            EXPECT_EQ(cost(summary, "barrier", "pairs", rank).count, 1);
            EXPECT_EQ(cost(summary, "barrier", "world/split", rank).count, 1);
            EXPECT_EQ(cost(summary, "barrier", "tp/split", rank).count, 1);
        }
        EXPECT_EQ(summary.unmatched, 0);
    });
}

TEST(trace, changes_no_result_and_no_traffic) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        const auto plain_before = ranks.traffic();
        auto plain = wild_values<float>(ranks.rank(), 3000);
        ranks.all_reduce(plain);
        const auto plain_sent = ranks.traffic() - plain_before;
        const auto before = trace.world().traffic();
        auto traced = wild_values<float>(ranks.rank(), 3000);
        trace.world().all_reduce(traced);
        EXPECT_EQ(trace.world().traffic() - before, plain_sent);
        EXPECT_TRUE(same_bits(traced, plain));
        const auto row = cost(trace.summary(), "all_reduce", "world", ranks.rank());
        EXPECT_EQ(row.messages, plain_sent.messages);
        EXPECT_EQ(row.bytes, plain_sent.bytes);
    });
}

TEST(trace, every_started_operation_is_recorded_once) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        const auto& world = trace.world();
        const std::vector<Index> parts(std::size_t(ranks.size()), 2);
        const Index all = 2 * ranks.size();
        auto a = world.start_all_reduce(Buffer<float>::zeros(4000));
        auto b = world.start_reduce_scatter(Buffer<float>::zeros(all), Buffer<float>(2));
        auto c = world.start_broadcast(Buffer<float>::zeros(5), 0);
        auto d = world.start_all_to_all(Buffer<int>::zeros(all), parts, Buffer<int>(all), parts);
        d.wait(), c.wait(), b.wait(), a.wait();
        const auto summary = trace.summary();
        for (const char* const name : {"all_reduce", "reduce_scatter", "broadcast", "all_to_all"})
            EXPECT_EQ(cost(summary, name, "world", ranks.rank()).count, 1) << name;
    });
}

TEST(trace, percentiles_are_exact_however_the_values_lie_on_the_ranks) {
    on_every_world([](const Communicator& ranks) {
        std::vector<std::vector<Index>> lists(6);
        for (Index value = 1; value <= 100; ++value)
            if (value * value % ranks.size() == ranks.rank())
                lists[0].push_back(value);
        if (ranks.rank() == 0)
            lists[1] = {7};
        if (ranks.rank() == ranks.size() - 1)
            lists[2] = {3, 4'000'000'000'000};
        lists[4] = {0, 0, 0};
        for (Index value = 0; value < 1000; ++value) // 0, 3, ..., 2997, each rank all of them
            lists[5].push_back(3 * value);
        const auto got = reigen::detail::percentiles(ranks, lists);
        using Three = std::array<Index, 3>;
        EXPECT_EQ(got[0], (Three{50, 95, 99}));
        EXPECT_EQ(got[1], (Three{7, 7, 7}));
        EXPECT_EQ(got[2], (Three{3, 4'000'000'000'000, 4'000'000'000'000}));
        EXPECT_EQ(got[3], (Three{0, 0, 0}));
        EXPECT_EQ(got[4], (Three{0, 0, 0}));
        EXPECT_EQ(got[5], (Three{3 * 499, 3 * 949, 3 * 989}));
    });
}

TEST(trace, steps_are_timed) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks);
        for (int k = 0; k < 20; ++k) {
            const TraceStep step;
            if (k == 7)
                sleep_ms(30);
        }
        const auto summary = trace.summary();
        const auto* const row = summary.find("step");
        ASSERT_NE(row, nullptr);
        EXPECT_EQ(row->total().count, 40);
        EXPECT_LT(row->seconds.p95, 0.030); // of 40 the two longest do not count
        EXPECT_GE(row->seconds.p99, 0.030);
    });
}

TEST(trace, what_finds_no_room_is_counted_and_told_of) {
    on_world(2, [](const Communicator& ranks) {
        const auto start = reigen::detail::Clock::now();
        const Trace trace(ranks, {.events = 40});
        std::vector<float> values(4);
        for (int k = 0; k < 100; ++k)
            trace.world().all_reduce(values);
        sleep_ms(30);
        const TraceStep step;
        const auto summary = trace.summary();
        const auto row = cost(summary, "all_reduce", "world", ranks.rank());
        EXPECT_EQ(row.count, 100);
        EXPECT_EQ(row.messages, 100);
        EXPECT_EQ(row.bytes, 1600);
        const auto& mine = summary.ranks[std::size_t(ranks.rank())];
        EXPECT_EQ(mine.events, 40);
        EXPECT_EQ(mine.events + mine.dropped, 301); // each one, a send and a receive; and the step
        EXPECT_NEAR(mine.seconds, mine.computing + mine.moving + mine.waiting, 1e-8);
        EXPECT_LT(mine.seconds, reigen::detail::seconds_since(start) - 0.025); // the time ends where the events do
        EXPECT_NE(to_string(summary).find("kept 40 events and dropped 261"), std::string::npos) << to_string(summary);
        std::ostringstream json;
        trace.write(json);
        EXPECT_EQ(json.str().find("\"dropped_events\":[261,261]") != std::string::npos, ranks.rank() == 0);
    });
}

TEST(trace, without_room_everything_is_still_counted) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks, {.events = 0});
        trace.world().barrier();
        const auto summary = trace.summary();
        EXPECT_EQ(cost(summary, "barrier", "world", ranks.rank()).messages, 1);
        EXPECT_EQ(summary.ranks[0].dropped, 3);
    });
    EXPECT_THROW(Trace(Communicator(), {.events = -1}), reigen::ArgumentError);
}

TEST(trace, an_exception_leaves_nothing_broken) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks);
        const Communicator& world = trace.world();
        world.set_deadline(0.05);
        if (ranks.rank() == 0) {
            std::vector<float> values(3);
            try {
                const TraceStep step;
                world.receive(values, 1, 9);
                FAIL() << "nobody sends";
            } catch (const TimeoutError&) {
            }
            EXPECT_EQ(reigen::detail::thread_trace_recorder->current().row, -1);
        }
        world.set_deadline(30);
        world.barrier();
        const auto summary = trace.summary();
        EXPECT_EQ(cost(summary, "receive", "world", 0).count, 1);
        EXPECT_GE(cost(summary, "receive", "world", 0).moving, 0.045); // nobody came to wait for
        EXPECT_EQ(summary.unmatched, 1);
        EXPECT_EQ(cost(summary, "barrier", "world", 1).count, 1);
        std::ostringstream json;
        trace.write(json);
        EXPECT_EQ(json.str().find("\"failed\":true") != std::string::npos, ranks.rank() == 0);
    });
}

TEST(trace, is_summed_up_after_its_communicator_has_failed) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks);
        const Communicator& world = trace.world();
        world.set_deadline(0.05);
        std::vector<float> values(ranks.rank() == 0 ? 5 : 6);
        EXPECT_THROW(world.all_reduce(values), reigen::Error);
        EXPECT_TRUE(world.failed());
        EXPECT_THROW(world.barrier(), reigen::CommunicationError);
        EXPECT_EQ(cost(trace.summary(), "all_reduce", "world", ranks.rank()).count, 1);
    });
}

TEST(trace, a_communicator_outlives_its_trace) {
    on_every_world([](const Communicator& ranks) {
        Communicator world;
        {
            const Trace trace(ranks);
            world = trace.world();
        }
        std::vector<int> values = {1};
        world.all_reduce(values);
        EXPECT_EQ(values[0], ranks.size());
        const TraceScope nothing("recorded by nobody");
        EXPECT_EQ(reigen::detail::thread_trace_recorder, nullptr);
    });
}

TEST(trace, two_traces_record_each_its_own) {
    on_every_world([](const Communicator& ranks) {
        const Trace outer(ranks);
        outer.world().barrier();
        const Trace inner(outer.world());
        inner.world().barrier();
        EXPECT_EQ(cost(inner.summary(), "barrier", "world", ranks.rank()).count, 1);
        EXPECT_EQ(cost(outer.summary(), "barrier", "world", ranks.rank()).count, 2);
    });
}

} // namespace trace_test
