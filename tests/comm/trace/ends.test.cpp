#include "comm/trace/support.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

namespace trace_ends_test {

using namespace trace_cases;
using reigen::TimeoutError;
using reigen::Trace;
using reigen::TraceScope;
using reigen::TraceStep;

// Traces without room left, after errors, and beyond their end.

TEST(trace_ends, what_finds_no_room_is_counted_and_told_of) {
    on_world(2, [](const Communicator& ranks) {
        const auto start = reigen::detail::Clock::now();
        const Trace trace(messages_alone(ranks), {.events = 40});
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

TEST(trace_ends, without_room_everything_is_still_counted) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(messages_alone(ranks), {.events = 0});
        trace.world().barrier();
        const auto summary = trace.summary();
        EXPECT_EQ(cost(summary, "barrier", "world", ranks.rank()).messages, 1);
        EXPECT_EQ(summary.ranks[0].dropped, 3);
    });
    EXPECT_THROW(Trace(Communicator(), {.events = -1}), reigen::ArgumentError);
}

TEST(trace_ends, an_exception_leaves_nothing_broken) {
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

TEST(trace_ends, is_summed_up_after_its_communicator_has_failed) {
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

TEST(trace_ends, a_communicator_outlives_its_trace) {
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

} // namespace trace_ends_test
