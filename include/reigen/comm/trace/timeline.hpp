#pragma once

#include <reigen/comm/trace/peers.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A time in which a rank's thread was in an operation: from the call of a blocking one to its end; of a started one,
/// the call that starts it, and the wait for it.
struct TraceSpan {
    Index start = 0;
    Index end = 0;
    Index event = 0;
    bool waits = false; // a wait for what was started before
    Index waiting = 0;  // of it, until the last rank had started the operation

    Index length() const { return end - start; }
    Index moving() const { return length() - waiting; }
};

/// What one rank recorded, and what it knows of the others: its spans in order, without overlap. All that is not in
/// one of them is computation.
class TraceTimeline {
  public:
    /// Collective over `ranks`.
    TraceTimeline(const Communicator& ranks, const TraceRecorder& recorder, const ClockReading& first_reading,
                  const TraceOptions& options)
        : recorder_(recorder),
          now_(recorder.now()),
          until_(recorder.complete_until(now_)),
          clock_(first_reading, read_clock(ranks, options)),
          last_starts_(LastStarts(ranks, recorder, clock_).take()) {
        for (Index event = 0; event < recorder.size(); ++event)
            if (recorder.at(event).kind == TraceEvent::Kind::operation)
                add_spans(event);
        std::ranges::sort(spans_, {}, &TraceSpan::start);
        for (TraceSpan& span : spans_)
            finish(span);
    }

    const TraceRecorder& recorder() const { return recorder_; }
    const TraceClock& clock() const { return clock_; }
    const std::vector<TraceSpan>& spans() const { return spans_; }
    const LastStart& last_start(Index event) const { return last_starts_[std::size_t(event)]; }

    Index begin() const { return recorder_.begin(); }

    /// To when the rank's time is accounted for: now, or when the first event found no room.
    Index until() const { return until_; }

    /// When an event ended, or now.
    Index end(const TraceEvent& event) const { return event.end > 0 ? event.end : now_; }

    /// Of how many ranks the trace ought to have the event.
    Index takes_part(const TraceEvent& event) const {
        const bool message = event.call == Call::send || event.call == Call::receive;
        return message ? 2 : Index(recorder_.group(event.group).members.size());
    }

  private:
    void add_spans(Index number) {
        const TraceEvent& event = recorder_.at(number);
        const Index wait_end = event.wait_end > 0 ? event.wait_end : now_;
        if (event.blocks)
            return add({event.start, std::max(end(event), event.wait_start > 0 ? wait_end : 0), number, true});
        add({event.start, event.posted > 0 ? event.posted : now_, number});
        if (event.wait_start > 0)
            add({event.wait_start, wait_end, number, true});
    }

    void add(TraceSpan span) {
        span.end = std::min(span.end, until_);
        if (span.start < span.end)
            spans_.push_back(span);
    }

    void finish(TraceSpan& span) {
        span.start = std::max(span.start, spans_end_);
        span.end = std::max(span.start, span.end);
        spans_end_ = span.end;
        if (span.waits)
            span.waiting = std::clamp<Index>(clock_.mine(last_start(span.event).at) - span.start, 0, span.length());
    }

    const TraceRecorder& recorder_;
    Index now_;
    Index until_;
    TraceClock clock_;
    std::vector<LastStart> last_starts_;
    std::vector<TraceSpan> spans_;
    Index spans_end_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
