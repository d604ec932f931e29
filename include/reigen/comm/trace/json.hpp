#pragma once

#include <reigen/comm/trace/timeline.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Bytes of the UTF-8 character at the start of the text, 0 where there is none.
inline std::size_t utf8_size(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? unsigned(static_cast<unsigned char>(text[i])) : 0;
    };
    const unsigned first = byte(0);
    const std::size_t size = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xc0U) != 0x80)
            return 0;
    const bool too_long = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool no_character = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
    return too_long || no_character ? 0 : size;
}

/// A text as a JSON string. What is not UTF-8 becomes U+FFFD.
inline std::string json_string(std::string_view text) {
    std::string result = "\"";
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        const auto byte = static_cast<unsigned char>(text.front());
        if (byte == '"' || byte == '\\')
            result.append(1, '\\').append(1, char(byte));
        else if (byte < 0x20) {
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", unsigned(byte));
            result += escape.data();
        } else
            result += size > 0 ? text.substr(0, size) : "\\ufffd";
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return result + '"';
}

/// Microseconds with all digits of the nanoseconds.
inline std::string json_microseconds(Index nanoseconds) {
    const Index positive = std::abs(nanoseconds);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%s%lld.%03d", nanoseconds < 0 ? "-" : "",
                  static_cast<long long>(positive / 1000), int(positive % 1000));
    return text.data();
}

/// The trace events of one rank, as text: its thread with steps, scopes, operations and the computation between them;
/// beside it the started operations and the messages of collectives, which may overlap.
///
/// Calls out(text) for each event.
template <class Out>
class TraceJson {
  public:
    /// `origin`: the time by rank 0's clock that counts as 0.
    TraceJson(const TraceTimeline& timeline, int rank, Index origin, Out out)
        : timeline_(timeline), recorder_(timeline.recorder()), rank_(rank), origin_(origin), out_(out) {}

    void write() {
        out_(concat(R"({"ph":"M","pid":)", rank_, R"(,"tid":0,"name":"process_name","args":{"name":"rank )", rank_,
                    "\"}}"));
        out_(concat(R"({"ph":"M","pid":)", rank_, R"(,"tid":0,"name":"process_sort_index","args":{"sort_index":)",
                    rank_, "}}"));
        out_(concat(R"({"ph":"M","pid":)", rank_, R"(,"tid":0,"name":"thread_name","args":{"name":"rank )", rank_,
                    "\"}}"));
        write_thread();
        for (Index number = 0; number < recorder_.size(); ++number)
            write_beside(number);
    }

  private:
    using Kind = TraceEvent::Kind;

    Index time(Index mine) const { return timeline_.clock().of_rank_0(mine) - origin_; }

    /// {"ph":"X","pid":0,"tid":0,"ts":12.345,"cat":"collective","name":"all_reduce tp"
    std::string head(char phase, Index at, const char* category, const std::string& name) const {
        return concat(R"({"ph":")", phase, R"(","pid":)", rank_, R"(,"tid":0,"ts":)", json_microseconds(time(at)),
                      R"(,"cat":")", category, R"(","name":)", json_string(name));
    }

    /// Starts and ends are rounded alike, so that what follows something does not overlap it.
    void slice(Index start, Index end, const char* category, const std::string& name,
               const std::string& arguments = {}) {
        out_(concat(head('X', start, category, name), R"(,"dur":)", json_microseconds(time(end) - time(start)),
                    R"(,"args":{)", arguments, "}}"));
    }

    /// The scopes, the spans within them, and between these the computation, which ends where a scope starts or ends.
    void write_thread() {
        std::vector<Index> cuts;
        for (Index number = 0; number < recorder_.size(); ++number)
            if (const TraceEvent& event = recorder_.at(number); event.kind == Kind::scope) {
                cuts.push_back(event.start);
                cuts.push_back(timeline_.end(event));
                const std::string& name = recorder_.rows()[std::size_t(event.row)].name;
                slice(event.start, timeline_.end(event), "scope", concat(name, ' ', event.number));
            }
        std::ranges::sort(cuts);
        Index at = timeline_.begin();
        auto cut = cuts.begin();
        const auto compute_until = [&](Index end) {
            for (; cut != cuts.end() && *cut < end; ++cut)
                compute(at, *cut);
            compute(at, end);
        };
        for (const TraceSpan& span : timeline_.spans()) {
            compute_until(span.start);
            write_span(span);
            at = span.end;
        }
        compute_until(timeline_.until());
    }

    void compute(Index& from, Index to) {
        if (to > from)
            slice(from, to, "compute", "compute");
        from = std::max(from, to);
    }

    std::string name_of(const TraceEvent& event) const {
        return concat(to_string(event.call), ' ', recorder_.rows()[std::size_t(event.row)].name);
    }

    static bool is_message(const TraceEvent& event) { return event.call == Call::send || event.call == Call::receive; }

    void write_span(const TraceSpan& span) {
        const TraceEvent& event = recorder_.at(span.event);
        const char* const verb = event.blocks ? "" : span.waits ? "wait for " : "start ";
        std::string arguments = what(span.event);
        if (span.waits)
            arguments +=
                concat(R"(,"moving_us":)", json_microseconds(span.moving()), R"(,"waiting_us":)",
                       json_microseconds(span.waiting), R"(,"last_rank":)", timeline_.last_start(span.event).rank);
        slice(span.start, span.end, is_message(event) ? "message" : "collective", verb + name_of(event), arguments);
    }

    std::string what(Index number) const {
        const TraceEvent& event = recorder_.at(number);
        std::string text = concat(R"("event":)", number, R"(,"bytes":)", event.bytes);
        if (is_message(event))
            text += concat(R"(,"peer":)", event.peer, R"(,"tag":)", event.tag);
        else
            text += concat(R"(,"messages":)", event.sent_messages, R"(,"sent_bytes":)", event.sent_bytes);
        if (event.parent >= 0)
            text += concat(R"(,"part_of":)", event.parent);
        return text + (event.failed ? R"(,"failed":true)" : "");
    }

    void write_beside(Index number) {
        const TraceEvent& event = recorder_.at(number);
        if (event.kind == Kind::nested)
            return span_beside(number, "part",
                               concat(to_string(event.call), event.call == Call::send ? " to " : " from ", event.peer));
        if (event.kind != Kind::operation)
            return;
        if (!event.blocks)
            span_beside(number, "started", name_of(event));
        if (is_message(event) && !event.failed && event.end > 0)
            write_arrow(event);
    }

    void span_beside(Index number, const char* category, const std::string& name) {
        const TraceEvent& event = recorder_.at(number);
        const std::string id = concat(R"(,"id":")", rank_, '.', number, '"');
        out_(concat(head('b', event.start, category, name), id, R"(,"args":{)", what(number), "}}"));
        out_(concat(head('e', timeline_.end(event), category, name), id, '}'));
    }

    /// From the start of a send to the end of its receive.
    void write_arrow(const TraceEvent& event) {
        const OperationKey key = key_of(event, recorder_.group(event.group), rank_);
        std::string id;
        for (const Index part : key)
            id += concat(id.empty() ? "" : ".", part);
        const bool leaves = event.call == Call::send;
        out_(concat(head(leaves ? 's' : 'f', leaves ? event.start : event.end, "arrow", "message"), R"(,"id":")", id,
                    leaves ? R"("})" : R"(","bp":"e"})"));
    }

    const TraceTimeline& timeline_;
    const TraceRecorder& recorder_;
    int rank_;
    Index origin_;
    Out out_;
};

/// Brings pieces of text to rank 0, which calls take(text) for its own and then for the others', rank by rank; no rank
/// holds more than one piece. `make(out)` calls out(text) as often as it likes. Collective.
template <class Make, class Take>
void stream_to_rank_0(const Communicator& ranks, Make make, Take take) {
    constexpr std::size_t piece = std::size_t(1) << 20;
    std::string text;
    const auto send = [&] {
        ranks.send(std::array<Index, 1>{Index(text.size())}, 0);
        if (!text.empty())
            ranks.send(std::vector<std::uint8_t>(text.begin(), text.end()), 0);
        text.clear();
    };
    const bool first = ranks.rank() == 0;
    make([&](const std::string& part) {
        if (first)
            return take(part);
        text += part;
        if (text.size() >= piece)
            send();
    });
    if (!first) {
        if (!text.empty())
            send();
        send();
        return;
    }
    for (int rank = 1; rank < ranks.size(); ++rank)
        for (std::array<Index, 1> size = {0}; ranks.receive(size, rank), size[0] > 0;) {
            std::vector<std::uint8_t> received(static_cast<std::size_t>(size[0]));
            ranks.receive(received, rank);
            take(std::string(received.begin(), received.end()));
        }
}

/// Writes the events of all ranks into a stream on rank 0. Collective.
inline void write_json(const Communicator& ranks, const TraceTimeline& timeline, std::ostream& out) {
    std::array<Index, 1> origin = {timeline.clock().of_rank_0(timeline.begin())};
    ranks.all_reduce(origin, Reduction::min);
    std::vector<Index> dropped(std::size_t(ranks.size()));
    ranks.all_gather(std::array<Index, 1>{timeline.recorder().dropped()}, dropped);
    const bool first = ranks.rank() == 0;
    if (first) {
        out << R"({"displayTimeUnit":"ms","otherData":{"dropped_events":[)";
        for (std::size_t rank = 0; rank < dropped.size(); ++rank)
            out << (rank > 0 ? "," : "") << dropped[rank];
        out << "]},\"traceEvents\":[";
    }
    stream_to_rank_0(
        ranks,
        [&](auto send) {
            const char* separator = first ? "\n" : ",\n";
            const auto line = [&](const std::string& event) {
                send(separator + event);
                separator = ",\n";
            };
            TraceJson(timeline, ranks.rank(), origin[0], line).write();
        },
        [&](const std::string& text) { out << text; });
    if (first)
        out << "\n]}\n";
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
