#include "comm/trace/support.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace trace_costs_test {

using namespace trace_cases;
using reigen::Trace;
using reigen::Traffic;

// What each rank sends in each collective, by the trace's counts, against the closed forms of the costs.

namespace {

template <class Calls>
Traffic sent_in(const Communicator& ranks, const char* operation, Calls calls) {
    const Trace trace(ranks);
    calls(trace.world());
    const TraceCost sent = cost(trace.summary(), operation, "world", ranks.rank());
    EXPECT_EQ(sent.count, 1) << operation;
    return {sent.messages, sent.bytes};
}

/// Elements of rank r where n are divided evenly, larger parts first.
Index even_part(Index n, int ranks, int r) {
    return n / ranks + (r < n % ranks ? 1 : 0);
}

Index non_empty(const std::vector<Index>& parts, int without) {
    Index count = 0;
    for (int r = 0; r < int(parts.size()); ++r)
        count += r != without && parts[std::size_t(r)] > 0 ? 1 : 0;
    return count;
}

constexpr Index width = sizeof(float);

} // namespace

TEST(trace_costs, all_reduce_sends_its_slice_to_all_and_theirs_to_each) {
    on_every_world([](const Communicator& ranks) {
        const Index P = ranks.size();
        for (const Index n : {Index(0), Index(1), Index(5), 4 * P, 5000 * P, 5000 * P + 1}) {
            std::vector<float> values(static_cast<std::size_t>(n));
            const Traffic sent =
                sent_in(ranks, "all_reduce", [&](const Communicator& world) { world.all_reduce(values); });
            const Index mine = even_part(n, int(P), ranks.rank());
            EXPECT_EQ(sent.bytes, P == 1 ? 0 : (n + (P - 2) * mine) * width) << n;
            if (n % P == 0) {
                EXPECT_EQ(sent.bytes, 2 * (P - 1) * n / P * width) << n; // (P-1)/P n, twice
            }
            const bool whole = P == 2 && n * width <= 4096;
            if (n >= P) {
                EXPECT_EQ(sent.messages, whole ? 1 : 2 * (P - 1)) << n;
            }
        }
    });
}

TEST(trace_costs, all_gather_sends_its_part_to_all) {
    on_every_world([](const Communicator& ranks) {
        const auto parts = uneven_parts(ranks.size());
        const Index mine = parts[std::size_t(ranks.rank())];
        const std::vector<float> part(static_cast<std::size_t>(mine));
        std::vector<float> all(static_cast<std::size_t>(total(parts)));
        const Traffic sent =
            sent_in(ranks, "all_gather", [&](const Communicator& world) { world.all_gather(part, all, parts); });
        EXPECT_EQ(sent, (Traffic{mine > 0 ? ranks.size() - 1 : 0, (ranks.size() - 1) * mine * width}));
    });
}

TEST(trace_costs, reduce_scatter_sends_all_but_its_part) {
    on_every_world([](const Communicator& ranks) {
        const auto parts = uneven_parts(ranks.size());
        const Index mine = parts[std::size_t(ranks.rank())];
        std::vector<float> part(static_cast<std::size_t>(mine));
        const std::vector<float> all(static_cast<std::size_t>(total(parts)));
        const Traffic sent = sent_in(ranks, "reduce_scatter", [&](const Communicator& world) {
            world.reduce_scatter(all, part, Reduction::sum, parts);
        });
        EXPECT_EQ(sent, (Traffic{non_empty(parts, ranks.rank()), (total(parts) - mine) * width}));
    });
}

TEST(trace_costs, broadcast_reaches_all_in_a_tree) {
    on_every_world([](const Communicator& ranks) {
        const int root = ranks.size() - 1;
        std::vector<float> values(6);
        const Traffic sent =
            sent_in(ranks, "broadcast", [&](const Communicator& world) { world.broadcast(values, root); });
        EXPECT_EQ(sent.bytes, sent.messages * 6 * width);
        EXPECT_LE(sent.messages, std::bit_width(unsigned(ranks.size() - 1)));
        std::vector<Index> all = {sent.messages};
        ranks.all_reduce(all);
        EXPECT_EQ(all[0], ranks.size() - 1);
    });
}

TEST(trace_costs, all_to_all_sends_all_but_what_it_keeps) {
    on_every_world([](const Communicator& ranks) {
        const auto part = [](int from, int to) { return Index((3 * from + 5 * to) % 4); };
        std::vector<Index> out_parts;
        std::vector<Index> in_parts;
        for (int peer = 0; peer < ranks.size(); ++peer) {
            out_parts.push_back(part(ranks.rank(), peer));
            in_parts.push_back(part(peer, ranks.rank()));
        }
        const std::vector<float> out(static_cast<std::size_t>(total(out_parts)));
        std::vector<float> in(static_cast<std::size_t>(total(in_parts)));
        const Traffic sent = sent_in(
            ranks, "all_to_all", [&](const Communicator& world) { world.all_to_all(out, out_parts, in, in_parts); });
        const Index kept = part(ranks.rank(), ranks.rank());
        EXPECT_EQ(sent, (Traffic{non_empty(out_parts, ranks.rank()), (total(out_parts) - kept) * width}));
    });
}

TEST(trace_costs, a_barrier_is_a_logarithm_of_empty_messages) {
    on_every_world([](const Communicator& ranks) {
        const Traffic sent = sent_in(ranks, "barrier", [](const Communicator& world) { world.barrier(); });
        EXPECT_EQ(sent, (Traffic{std::bit_width(unsigned(ranks.size() - 1)), 0}));
    });
}

} // namespace trace_costs_test
