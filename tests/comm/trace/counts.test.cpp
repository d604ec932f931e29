#include "comm/trace/support.hpp"

#include <reigen/comm/mesh.hpp>
#include <reigen/comm/texts.hpp>

#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

namespace trace_counts_test {

using namespace trace_cases;
using reigen::Buffer;
using reigen::cp;
using reigen::dp;
using reigen::Mesh;
using reigen::tp;
using reigen::Trace;
using reigen::TraceScope;
using reigen::TraceStep;

// What a summary counts, under which names, and that it is one summary on all ranks.

namespace {

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

TEST(trace_counts, the_summary_is_the_same_on_every_rank) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        for (int k = 0; k < 3; ++k) {
            const TraceStep step;
            trace.world().barrier();
        }
        if (ranks.rank() == 0)
            const TraceScope only_here("a scope of rank 0");
        const std::string mine = all_of(trace.summary());
        for (const std::string& text : reigen::all_gather_texts(ranks, mine))
            EXPECT_EQ(text, mine);
        EXPECT_NE(mine.find("a scope of rank 0"), std::string::npos) << mine;
    });
}

TEST(trace_counts, groups_go_by_the_names_of_their_axes) {
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

TEST(trace_counts, changes_no_result_and_no_traffic) {
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

TEST(trace_counts, every_started_operation_is_recorded_once) {
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

TEST(trace_counts, percentiles_are_exact_however_the_values_lie_on_the_ranks) {
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

TEST(trace_counts, steps_are_timed) {
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

TEST(trace_counts, two_traces_record_each_its_own) {
    on_every_world([](const Communicator& ranks) {
        const Trace outer(ranks);
        outer.world().barrier();
        const Trace inner(outer.world());
        inner.world().barrier();
        EXPECT_EQ(cost(inner.summary(), "barrier", "world", ranks.rank()).count, 1);
        EXPECT_EQ(cost(outer.summary(), "barrier", "world", ranks.rank()).count, 2);
    });
}

} // namespace trace_counts_test
