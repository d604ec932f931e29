#include "comm/trace/support.hpp"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

namespace trace_json_test {

using nlohmann::json;
using reigen::Buffer;
using reigen::cp;
using reigen::Mesh;
using reigen::tp;
using reigen::Trace;
using reigen::TraceScope;
using reigen::TraceStep;

namespace {

/// The trace in text, on rank 0; null elsewhere.
json written(const Trace& trace) {
    std::ostringstream out;
    trace.write(out);
    return trace.own_ranks().rank() == 0 ? json::parse(out.str()) : json();
}

/// A few steps with everything in them: collectives, a ring, work beside what is started, uneven ranks.
void run_steps(const Communicator& world, int steps) {
    const Mesh mesh(world, {{tp, world.size()}});
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    for (int k = 0; k < steps; ++k) {
        const TraceStep step;
        std::vector<float> values(5000, 1);
        mesh[tp].all_reduce(values);
        const TraceScope scope("ring");
        auto sum = world.start_all_reduce(Buffer<float>::zeros(3000));
        if (world.size() > 1) {
            auto arriving = world.start_receive(Buffer<int>(9), previous, 3);
            auto leaving = world.start_send(Buffer<int>::zeros(9), next, 3);
            std::this_thread::sleep_for(std::chrono::microseconds(300 * (1 + world.rank())));
            leaving.wait();
            arriving.wait();
        }
        sum.wait();
    }
}

/// Nanoseconds, exactly.
std::int64_t nanoseconds(const json& microseconds) {
    return std::llround(1000 * microseconds.get<double>());
}

struct Slice {
    std::int64_t start, end;
    std::string category;
    json arguments;
};

std::vector<Slice> slices_of(const json& trace, int rank) {
    std::vector<Slice> slices;
    for (const json& event : trace["traceEvents"])
        if (event["ph"] == "X" && event["pid"] == rank) {
            const auto start = nanoseconds(event["ts"]);
            slices.push_back({start, start + nanoseconds(event["dur"]), event["cat"], event["args"]});
        }
    std::ranges::sort(
        slices, [](const Slice& a, const Slice& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
    return slices;
}

} // namespace

TEST(trace_json, has_one_track_a_rank_with_a_name) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        run_steps(trace.world(), 2);
        const json all = written(trace);
        if (ranks.rank() != 0)
            return;
        std::set<std::pair<int, int>> tracks;
        std::map<int, std::string> names;
        for (const json& event : all["traceEvents"]) {
            tracks.emplace(event["pid"].get<int>(), event["tid"].get<int>());
            if (event["name"] == "thread_name")
                names[event["pid"]] = event["args"]["name"];
        }
        ASSERT_EQ(tracks.size(), std::size_t(ranks.size()));
        for (int rank = 0; rank < ranks.size(); ++rank) {
            EXPECT_TRUE(tracks.contains({rank, 0}));
            EXPECT_EQ(names[rank], reigen::concat("rank ", rank));
        }
    });
}

TEST(trace_json, slices_nest_and_those_within_scopes_fill_the_whole_time_without_overlap) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        run_steps(trace.world(), 4);
        const json all = written(trace);
        if (ranks.rank() != 0)
            return;
        for (int rank = 0; rank < ranks.size(); ++rank) {
            std::vector<std::int64_t> open;
            std::int64_t filled_to = -1;
            for (const Slice& slice : slices_of(all, rank)) {
                while (!open.empty() && open.back() <= slice.start)
                    open.pop_back();
                EXPECT_TRUE(open.empty() || slice.end <= open.back()) << "rank " << rank << " at " << slice.start;
                open.push_back(slice.end);
                if (slice.category == "scope")
                    continue;
                EXPECT_TRUE(filled_to < 0 || slice.start == filled_to) << "rank " << rank << " at " << slice.start;
                filled_to = slice.end;
            }
        }
    });
}

TEST(trace_json, slices_sum_up_to_the_summary) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        run_steps(trace.world(), 3);
        const json all = written(trace);
        const auto summary = trace.summary();
        if (ranks.rank() != 0)
            return;
        for (int rank = 0; rank < ranks.size(); ++rank) {
            double waiting = 0;
            double in_operations = 0;
            for (const Slice& slice : slices_of(all, rank)) {
                if (slice.arguments.contains("waiting_us"))
                    waiting += 1e-6 * slice.arguments["waiting_us"].get<double>();
                if (slice.category == "message" || slice.category == "collective")
                    in_operations += 1e-9 * double(slice.end - slice.start);
            }
            const auto& sums = summary.ranks[std::size_t(rank)];
            EXPECT_NEAR(in_operations, sums.moving + sums.waiting, 1e-8);
            EXPECT_NEAR(waiting, sums.waiting, 1e-3); // the clocks have been compared once more
        }
    });
}

TEST(trace_json, messages_of_a_collective_lie_within_it) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(trace_cases::messages_alone(ranks));
        run_steps(trace.world(), 3);
        const json all = written(trace);
        if (ranks.rank() != 0)
            return;
        struct Whole {
            std::int64_t start = 0, end = 0;
            Index messages = 0, found = 0;
        };
        std::map<std::pair<int, int>, Whole> collectives; // rank, event
        std::map<std::string, json> begun;
        const auto whole = [](const json& event) -> std::pair<int, int> {
            return {event["pid"].get<int>(), event["args"]["event"].get<int>()};
        };
        for (const json& event : all["traceEvents"]) {
            if (event["ph"] == "X" && event["cat"] == "collective") {
                const auto start = nanoseconds(event["ts"]);
                Whole& it = collectives[whole(event)];
                it.start = it.end == 0 ? start : std::min(it.start, start);
                it.end = std::max(it.end, start + nanoseconds(event["dur"]));
                it.messages = event["args"]["messages"];
            }
            if (event["ph"] == "b")
                begun[event["id"]] = event;
        }
        for (const json& event : all["traceEvents"]) // one that was started may end while its rank waits for another
            if (event["ph"] == "e" && event["cat"] == "started")
                if (const auto it = collectives.find(whole(begun.at(event["id"]))); it != collectives.end())
                    it->second.end = std::max(it->second.end, nanoseconds(event["ts"]));
        Index parts = 0;
        for (const json& event : all["traceEvents"]) {
            if (event["ph"] != "e" || event["cat"] != "part")
                continue;
            const json& begin = begun.at(event["id"]);
            Whole& it = collectives.at({event["pid"].get<int>(), begin["args"]["part_of"].get<int>()});
            EXPECT_GE(nanoseconds(begin["ts"]), it.start);
            EXPECT_LE(nanoseconds(event["ts"]), it.end);
            it.found += begin["name"].get<std::string>().starts_with("send") ? 1 : 0;
            ++parts;
        }
        EXPECT_EQ(parts > 0, ranks.size() > 1);
        for (const auto& [who, it] : collectives)
            EXPECT_EQ(it.found, it.messages);
    });
}

TEST(trace_json, arrows_lead_from_each_send_to_its_receive) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        run_steps(trace.world(), 3);
        const json all = written(trace);
        if (ranks.rank() != 0)
            return;
        std::map<std::string, std::pair<json, json>> arrows;
        for (const json& event : all["traceEvents"]) {
            if (event["ph"] == "s")
                arrows[event["id"]].first = event;
            if (event["ph"] == "f")
                arrows[event["id"]].second = event;
        }
        EXPECT_EQ(arrows.size(), ranks.size() > 1 ? 3U * unsigned(ranks.size()) : 0U);
        for (const auto& [id, ends] : arrows) {
            ASSERT_FALSE(ends.first.is_null() || ends.second.is_null()) << id;
            EXPECT_EQ(ends.second["pid"], (ends.first["pid"].get<int>() + 1) % ranks.size());
            EXPECT_LE(nanoseconds(ends.first["ts"]), nanoseconds(ends.second["ts"]));
        }
    });
}

TEST(trace_json, times_of_ranks_whose_clocks_differ_are_brought_together) {
    on_world(3, [](const Communicator& ranks) {
        const Trace trace(ranks, {.clock_shift = Index(7'000'000'000) * ranks.rank()});
        trace.world().barrier();
        const json all = written(trace);
        if (ranks.rank() != 0)
            return;
        std::vector<double> ends; // of the barrier, which no rank leaves before all have come
        for (const json& event : all["traceEvents"])
            if (event["ph"] == "X" && event["name"] == "barrier world")
                ends.push_back(1e-6 * (event["ts"].get<double>() + event["dur"].get<double>()));
        ASSERT_EQ(ends.size(), 3U);
        for (const double end : ends)
            EXPECT_NEAR(end, ends[0], 0.05);
    });
}

TEST(trace_json, any_name_is_valid_json) {
    on_world(2, [](const Communicator& ranks) {
        const Trace trace(ranks);
        const std::string names[] = {"a \"quoted\" \\ name", "line\nend\t\x01",
                                     "K\xc3\xb6ln \xe2\x88\x82 \xf0\x9f\x8e\xb6",
                                     "\xc3(\xff\xed\xa0\x80 \xf0\x8f\xbf\xbf \xe2\x88", std::string("zero\0byte", 9)};
        const std::string valid[] = {names[0], names[1], names[2],
                                     "\uFFFD(\uFFFD\uFFFD\uFFFD\uFFFD \uFFFD\uFFFD\uFFFD\uFFFD \uFFFD\uFFFD", names[4]};
        for (const std::string& name : names) {
            const TraceScope scope(name);
            trace.world().named(name).barrier();
        }
        const json all = written(trace);
        const auto summary = trace.summary();
        for (const std::string& name : names) {
            EXPECT_NE(summary.find(name), nullptr);
            EXPECT_NE(summary.find("barrier", name), nullptr);
        }
        if (ranks.rank() != 0)
            return;
        std::set<std::string> found;
        for (const json& event : all["traceEvents"])
            found.insert(event["name"].get<std::string>());
        for (const std::string& name : valid) {
            EXPECT_TRUE(found.contains(name + " 0")) << name;
            EXPECT_TRUE(found.contains("barrier " + name)) << name;
        }
    });
}

TEST(trace_json, goes_into_a_file_of_rank_0_in_pieces) {
    on_every_world([](const Communicator& ranks) {
        const Trace trace(ranks);
        for (int k = 0; k < 3000; ++k)
            const TraceStep step; // more than one piece of text from every rank
        const auto path =
            std::filesystem::temp_directory_path() / reigen::concat("reigen_trace_", ranks.size(), ".json");
        write_trace(trace, path);
        if (ranks.rank() == 0) {
            const json all = json::parse(std::ifstream(path));
            EXPECT_GT(std::filesystem::file_size(path) / std::size_t(ranks.size()), std::size_t(1) << 18);
            std::map<int, int> steps;
            for (const json& event : all["traceEvents"])
                steps[event["pid"]] += event.value("cat", "") == "scope" ? 1 : 0;
            for (int rank = 0; rank < ranks.size(); ++rank)
                EXPECT_EQ(steps[rank], 3000);
            std::filesystem::remove(path);
        }
        EXPECT_THROW(write_trace(trace, "/no/such/folder/trace.json"), reigen::Error);
        ranks.barrier();
    });
}

} // namespace trace_json_test
