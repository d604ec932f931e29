#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Seconds that 50, 95 and 99 of 100 do not exceed: the smallest of the values of which that can be said.
struct Percentiles {
    double p50 = 0;
    double p95 = 0;
    double p99 = 0;
    bool operator==(const Percentiles&) const = default;
};

/// What one rank did in one kind of operation. Counts and bytes are complete; times are of the events that were kept.
struct TraceCost {
    Index count = 0;
    Index messages = 0; // sent
    Index bytes = 0;    // sent
    double moving = 0;  // seconds its thread was in them, without the next
    double waiting = 0; // seconds its thread was in them before the last rank had come

    TraceCost& operator+=(const TraceCost& other) {
        count += other.count;
        messages += other.messages;
        bytes += other.bytes;
        moving += other.moving;
        waiting += other.waiting;
        return *this;
    }
};

/// A trace in numbers, the same on every rank.
struct TraceSummary {
    /// An operation on groups of one name, as "all_reduce" over "tp"; or the steps or scopes of one name, over "".
    struct Row {
        std::string operation;
        std::string over;
        std::vector<TraceCost> ranks;
        Percentiles seconds; // from start to end, over all of them on all ranks

        TraceCost total() const {
            TraceCost sum;
            for (const TraceCost& rank : ranks)
                sum += rank;
            return sum;
        }
    };

    /// Where one rank's time went: seconds = computing + moving + waiting.
    struct Rank {
        double seconds = 0; // accounted for: until the trace was full, or to the end
        double computing = 0;
        double moving = 0;
        double waiting = 0;
        double waited_for = 0; // by others, because it was the last to come
        Index events = 0;      // kept
        Index dropped = 0;     // for which there was no room
    };

    std::vector<Row> rows;
    std::vector<Rank> ranks;
    Index unmatched = 0; // operations of which not all ranks' events are there, so that waiting may count as moving

    /// The row, or null.
    const Row* find(const std::string& operation, const std::string& over = {}) const {
        const auto row = std::ranges::find_if(
            rows, [&](const Row& each) { return each.operation == operation && each.over == over; });
        return row == rows.end() ? nullptr : &*row;
    }
};

namespace detail {

inline std::string number_text(const char* form, double value, const char* unit) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), form, value, unit);
    return text.data();
}

/// Three digits and the unit that fits: "1.25 s", "12.5 ms", "125 us".
inline std::string seconds_text(double seconds) {
    struct Unit {
        double seconds;
        const char* name;
    };
    constexpr Unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    if (seconds == 0)
        return "0 s";
    for (const auto [unit, name] : units)
        if (seconds >= 0.9995 * unit || unit == 1e-6) {
            const double value = seconds / unit;
            return number_text(value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", value, name);
        }
    return {};
}

inline std::string bytes_text(double bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
        bytes /= 1024;
    return number_text(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

/// Rows of cells under a heading, the first two columns to the left and the others to the right.
inline std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const auto& row : rows)
        for (std::size_t column = 0; column < row.size(); ++column)
            widths[column] = std::max(widths[column], row[column].size());
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            const std::string padding(widths[column] - row[column].size(), ' ');
            line += "  " + (column < left ? row[column] + padding : padding + row[column]);
        }
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    return text;
}

inline std::vector<std::string> cells(const TraceSummary::Row& row) {
    const TraceCost all = row.total();
    const auto mean = [&](auto sum) { return double(sum) / double(row.ranks.size()); };
    const bool moves = !row.over.empty();
    const auto number = [&](Index sum) {
        return number_text(sum % Index(row.ranks.size()) == 0 ? "%.0f%s" : "%.1f%s", mean(sum), "");
    };
    return {row.operation,
            row.over,
            number(all.count),
            moves ? number(all.messages) : "",
            moves ? bytes_text(mean(all.bytes)) : "",
            moves ? seconds_text(mean(all.moving)) : "",
            moves ? seconds_text(mean(all.waiting)) : "",
            seconds_text(row.seconds.p50),
            seconds_text(row.seconds.p95),
            seconds_text(row.seconds.p99)};
}

} // namespace detail

/// Two tables: of the operations, and of where each rank's time went.
inline std::string to_string(const TraceSummary& summary) {
    std::vector<std::vector<std::string>> operations = {
        {"operation", "over", "count", "messages", "sent", "moving", "waiting", "50 %", "95 %", "99 %"}};
    for (const TraceSummary::Row& row : summary.rows)
        operations.push_back(detail::cells(row));
    std::vector<std::vector<std::string>> ranks = {{"rank", "time", "computing", "moving", "waiting", "waited for"}};
    std::string notes;
    for (std::size_t r = 0; r < summary.ranks.size(); ++r) {
        const TraceSummary::Rank& rank = summary.ranks[r];
        ranks.push_back({concat(r), detail::seconds_text(rank.seconds), detail::seconds_text(rank.computing),
                         detail::seconds_text(rank.moving), detail::seconds_text(rank.waiting),
                         detail::seconds_text(rank.waited_for)});
        if (rank.dropped > 0)
            notes +=
                concat("  rank ", r, " kept ", rank.events, " events and dropped ", rank.dropped,
                       ": its times end after ", detail::seconds_text(rank.seconds), ", its counts and bytes do not\n");
    }
    if (summary.unmatched > 0)
        notes += concat("  the events of ", summary.unmatched,
                        " operations are missing on some rank: waiting for it may count as moving\n");
    return concat(detail::aligned(operations, 2),
                  "  (of a rank on average; 50, 95 and 99 of 100 took no longer, on any rank)\n",
                  detail::aligned(ranks, 0), notes);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
