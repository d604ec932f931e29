#pragma once

#include <reigen/comm/texts.hpp>
#include <reigen/comm/trace/summary.hpp>
#include <reigen/comm/trace/timeline.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

inline double seconds_of(Index nanoseconds) {
    return 1e-9 * double(nanoseconds);
}

/// Exact percentiles of values that lie on many ranks, of several lists at once, without bringing them together: the
/// smallest value that enough of all values do not exceed, by halving the interval it may lie in. Collective.
///
/// `lists`: this rank's values of each list, sorted, none negative
inline std::vector<std::array<Index, 3>> percentiles(const Communicator& ranks,
                                                     const std::vector<std::vector<Index>>& lists) {
    constexpr std::array<Index, 3> wanted = {50, 95, 99};
    std::vector<Index> sizes;
    Index largest = 0;
    for (const auto& list : lists) {
        sizes.push_back(Index(list.size()));
        largest = std::max(largest, list.empty() ? 0 : list.back());
    }
    ranks.all_reduce(sizes);
    ranks.all_reduce(std::span(&largest, 1), Reduction::max);
    std::vector<std::array<Index, 3>> low(lists.size(), {0, 0, 0});
    std::vector<std::array<Index, 3>> high(lists.size(), {largest, largest, largest});
    while (low != high) {
        std::vector<Index> below;
        for (std::size_t i = 0; i < lists.size(); ++i)
            for (std::size_t k = 0; k < 3; ++k) {
                const Index middle = low[i][k] + (high[i][k] - low[i][k]) / 2;
                below.push_back(std::ranges::upper_bound(lists[i], middle) - lists[i].begin());
            }
        ranks.all_reduce(below);
        for (std::size_t i = 0; i < lists.size(); ++i)
            for (std::size_t k = 0; k < 3; ++k) {
                const Index middle = low[i][k] + (high[i][k] - low[i][k]) / 2;
                const bool enough = 100 * below[3 * i + k] >= wanted[k] * sizes[i];
                (enough ? high : low)[i][k] = enough ? middle : std::min(middle + 1, high[i][k]);
            }
    }
    return low;
}

/// Sums up a timeline of every rank. Collective.
class TraceSumming {
  public:
    TraceSumming(const Communicator& ranks, const TraceTimeline& timeline)
        : ranks_(ranks), timeline_(timeline), recorder_(timeline.recorder()) {
        name_rows();
        sum_up_rows();
        sum_up_ranks();
    }

    TraceSummary take() { return std::move(summary_); }

  private:
    static std::string over(const TraceRow& row) { return row.scope ? "" : row.name; }

    /// "5:hello"
    static std::string counted(const std::string& text) { return concat(text.size(), ':', text); }

    static std::string take_counted(std::string_view& text) {
        std::size_t size = 0;
        const auto colon = std::from_chars(text.data(), text.data() + text.size(), size).ptr;
        text.remove_prefix(std::size_t(colon + 1 - text.data()));
        const std::string result(text.substr(0, size));
        text.remove_prefix(size);
        return result;
    }

    /// The rows that any rank has, in the order of the first rank that has them.
    void name_rows() {
        std::string mine;
        for (const TraceRow& row : recorder_.rows())
            mine += counted(row.operation()) + counted(over(row));
        const auto texts = all_gather_texts(ranks_, mine);
        for (std::string_view text : texts)
            while (!text.empty()) {
                const std::string operation = take_counted(text);
                const std::string over = take_counted(text);
                if (summary_.find(operation, over) == nullptr)
                    summary_.rows.push_back({operation, over, {}, {}});
            }
        for (const TraceRow& row : recorder_.rows())
            places_.push_back(std::size_t(summary_.find(row.operation(), over(row)) - summary_.rows.data()));
    }

    std::size_t place_of(const TraceEvent& event) const { return places_[std::size_t(event.row)]; }

    /// Count, messages, bytes, nanoseconds moving and waiting of each row on this rank.
    std::vector<Index> costs() const {
        std::vector<Index> numbers(5 * summary_.rows.size(), 0);
        for (std::size_t row = 0; row < places_.size(); ++row) {
            const TraceRow& counts = recorder_.rows()[row];
            numbers[5 * places_[row]] += counts.count;
            numbers[5 * places_[row] + 1] += counts.messages;
            numbers[5 * places_[row] + 2] += counts.bytes;
        }
        for (const TraceSpan& span : timeline_.spans()) {
            const std::size_t row = place_of(recorder_.at(span.event));
            numbers[5 * row + 3] += span.moving();
            numbers[5 * row + 4] += span.waiting;
        }
        return numbers;
    }

    /// From start to end of what came to its end, of each row.
    std::vector<std::vector<Index>> durations() const {
        std::vector<std::vector<Index>> lists(summary_.rows.size());
        for (Index number = 0; number < recorder_.size(); ++number) {
            const TraceEvent& event = recorder_.at(number);
            if (event.kind != TraceEvent::Kind::nested && event.end > 0 && !event.failed)
                lists[place_of(event)].push_back(event.end - event.start);
        }
        for (auto& list : lists)
            std::ranges::sort(list);
        return lists;
    }

    void sum_up_rows() {
        const std::vector<Index> mine = costs();
        std::vector<Index> all(mine.size() * std::size_t(ranks_.size()));
        ranks_.all_gather(mine, all);
        const auto sorted = percentiles(ranks_, durations());
        for (std::size_t row = 0; row < summary_.rows.size(); ++row) {
            for (int rank = 0; rank < ranks_.size(); ++rank) {
                const Index* const numbers = all.data() + std::size_t(rank) * mine.size() + 5 * row;
                summary_.rows[row].ranks.push_back(
                    {numbers[0], numbers[1], numbers[2], seconds_of(numbers[3]), seconds_of(numbers[4])});
            }
            const auto& [p50, p95, p99] = sorted[row];
            summary_.rows[row].seconds = {seconds_of(p50), seconds_of(p95), seconds_of(p99)};
        }
    }

    void sum_up_ranks() {
        std::array<Index, 5> mine = {timeline_.until() - timeline_.begin(), 0, 0, recorder_.size(),
                                     recorder_.dropped()};
        std::vector<Index> waited_for(std::size_t(ranks_.size()) + 1, 0);
        for (const TraceSpan& span : timeline_.spans()) {
            mine[1] += span.moving();
            mine[2] += span.waiting;
            if (span.waiting > 0)
                waited_for[std::size_t(timeline_.last_start(span.event).rank)] += span.waiting;
        }
        for (Index number = 0; number < recorder_.size(); ++number)
            if (const TraceEvent& event = recorder_.at(number); event.kind == TraceEvent::Kind::operation)
                waited_for.back() += timeline_.last_start(number).known < timeline_.takes_part(event) ? 1 : 0;
        std::vector<Index> all(mine.size() * std::size_t(ranks_.size()));
        ranks_.all_gather(mine, all);
        ranks_.all_reduce(waited_for);
        summary_.unmatched = waited_for.back();
        for (std::size_t rank = 0; rank < std::size_t(ranks_.size()); ++rank) {
            const auto [time, moving, waiting, events, dropped] = std::to_array<Index, 5>(
                {all[5 * rank], all[5 * rank + 1], all[5 * rank + 2], all[5 * rank + 3], all[5 * rank + 4]});
            summary_.ranks.push_back({seconds_of(time), seconds_of(time - moving - waiting), seconds_of(moving),
                                      seconds_of(waiting), seconds_of(waited_for[rank]), events, dropped});
        }
    }

    const Communicator& ranks_;
    const TraceTimeline& timeline_;
    const TraceRecorder& recorder_;
    std::vector<std::size_t> places_; // of the recorder's rows among all
    TraceSummary summary_;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
