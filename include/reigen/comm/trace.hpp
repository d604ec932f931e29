#pragma once

#include <reigen/comm/trace/json.hpp>
#include <reigen/comm/trace/summing.hpp>
#include <reigen/comm/trace/traced.hpp>

#include <fstream>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Records what the ranks of a communicator do with it and with all groups made from it, and what they compute between.
///
///     Trace trace(world);
///     const Mesh mesh(trace.world(), {{tp, trace.world().size()}});
///     for (...) {
///         const TraceStep step;
///         ...
///     }
///     write_trace(trace, "trace.json");                    // for ui.perfetto.dev or chrome://tracing
///     std::cout << to_string(trace.summary());             // the same on every rank
///
/// A rank's time is divided into computing, moving and waiting, which sum up to it: it waits in an operation until the
/// last rank that takes part has started it (of a message: the other side), it moves for the rest, and it computes when
/// it is in none. Who came when is found out afterwards, so the run has no message more than without a trace.
///
/// Where a communicator is `checked` as well, the trace goes outside: Trace(checked(world)).
///
/// Cost        100 to 200 ns an event (bench/wrappers), of which a collective is one and each of its sends and receives
///             one more; 104 bytes an event, up to `options.events` a rank. Later events are counted, and told of as
///             dropped; counts and bytes stay complete. Without a trace nothing
/// Collective  over `ranks`, which stays as it is: not recorded
class Trace {
  public:
    explicit Trace(const Communicator& ranks, TraceOptions options = {})
        : options_(checked_options(options)),
          own_(own_group(ranks)),
          first_reading_(detail::read_clock(own_, options_)),
          recorder_(std::make_shared<detail::TraceRecorder>(options_)),
          world_(std::make_shared<Traced>(ranks.backend(), recorder_, all_of(ranks))),
          before_(std::exchange(detail::thread_trace_recorder, recorder_.get())) {
        world_.set_deadline(ranks.deadline());
    }
    ~Trace() { detail::thread_trace_recorder = before_; }
    Trace(const Trace&) = delete;
    Trace& operator=(const Trace&) = delete;

    /// The communicator that records, by the name of "world".
    const Communicator& world() const { return world_; }

    /// What was recorded so far, in numbers. Collective over all ranks; works where `world()` has failed.
    TraceSummary summary() const { return detail::TraceSumming(own_, timeline()).take(); }

    /// Writes what was recorded so far into a stream, on rank 0. Collective, as `summary`.
    void write(std::ostream& out) const { detail::write_json(own_, timeline(), out); }

    /// The ranks, not recorded, with messages of the trace's own.
    const Communicator& own_ranks() const { return own_; }

  private:
    static TraceOptions checked_options(TraceOptions options) {
        require(options.events >= 0, "Trace: room for ", options.events, " events");
        return options;
    }

    static Communicator own_group(const Communicator& ranks) {
        Communicator group(detail::same_group(*ranks.backend()));
        group.set_deadline(ranks.deadline());
        return group;
    }

    static detail::TraceGroup all_of(const Communicator& ranks) {
        detail::TraceGroup group{0, std::vector<int>(std::size_t(ranks.size()))};
        std::iota(group.members.begin(), group.members.end(), 0);
        return group;
    }

    detail::TraceTimeline timeline() const { return {own_, *recorder_, first_reading_, options_}; }

    TraceOptions options_;
    Communicator own_;
    detail::ClockReading first_reading_;
    std::shared_ptr<detail::TraceRecorder> recorder_;
    Communicator world_;
    detail::TraceRecorder* before_;
};

/// Writes a trace into a file, on rank 0. Collective.
///
/// Throws  Error on every rank where the file cannot be written
inline void write_trace(const Trace& trace, const std::string& path) {
    const Communicator& ranks = trace.own_ranks();
    std::ofstream file;
    const auto require_good = [&](const char* what) {
        std::array<int, 1> good = {file ? 1 : 0};
        ranks.broadcast(good, 0);
        require<Error>(good[0] == 1, "write_trace: ", what, ' ', path);
    };
    if (ranks.rank() == 0)
        file.open(path);
    require_good("cannot write");
    trace.write(file);
    file.close();
    require_good("not all of the trace could be written to");
}

/// While it lives, what this rank does is shown in its trace under a name. Nothing where no `Trace` of this thread
/// lives. Scopes of a rank end in the opposite order of their starts, and before their `Trace`.
class TraceScope {
  public:
    explicit TraceScope(std::string_view name) : recorder_(detail::thread_trace_recorder) {
        if (recorder_ == nullptr)
            return;
        detail::TraceEvent event;
        event.kind = detail::TraceEvent::Kind::scope;
        event.row = recorder_->row(true, {}, name);
        event.number = recorder_->row(event.row).count++;
        event.start = recorder_->now();
        event_ = recorder_->add(event);
    }
    ~TraceScope() {
        if (event_ >= 0)
            recorder_->at(event_).end = recorder_->now();
    }
    TraceScope(const TraceScope&) = delete;
    TraceScope& operator=(const TraceScope&) = delete;

  private:
    detail::TraceRecorder* recorder_;
    Index event_ = -1;
};

/// The scope of one step, of a training or whatever is repeated.
class TraceStep : public TraceScope {
  public:
    TraceStep() : TraceScope("step") {}
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
