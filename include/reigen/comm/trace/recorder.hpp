#pragma once

#include <reigen/comm/backend/operation.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

struct TraceOptions {
    Index events = Index(1) << 20; // kept by each rank, 104 bytes each, taken as needed; later ones are only counted
    Index clock_shift = 0;         // nanoseconds added to this rank's clock, to try out hosts whose clocks differ
};

namespace detail {

/// Nanoseconds of this rank's clock.
inline Index trace_now(const TraceOptions& options) {
    const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
    return Index(std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count()) + options.clock_shift;
}

/// Something that a rank did or had under way. Times are nanoseconds of the rank's own clock.
struct TraceEvent {
    enum class Kind : std::uint8_t { scope, operation, nested };

    Kind kind = Kind::operation;
    Call call = Call::barrier;
    bool blocks = false;     // the rank did nothing else from its start to its end
    bool failed = false;     // it ended before its time
    int row = -1;            // of the recorder's rows
    int group = -1;          // of the recorder's groups
    int peer = -1;           // of a message, a rank of the trace
    int tag = 0;             // of a message
    Index parent = -1;       // nested: the event of its collective
    Index number = 0;        // of a collective in its group; of a message among those of its group, ranks and tag
    Index bytes = 0;         // of a message, or of the whole that a collective works on
    Index sent_bytes = 0;    // by this rank, in messages of a collective
    Index sent_messages = 0; // likewise
    Index start = 0;         // the call came
    Index posted = 0;        // the call had done what it can without waiting
    Index wait_start = 0;    // the rank began to wait for it; 0: it did not
    Index wait_end = 0;
    Index end = 0; // found complete; 0: still under way
};

/// What is summed up in one line: a call on groups of one name, or the scopes of one name.
struct TraceRow {
    bool scope = false;
    Call call = Call::barrier;
    std::string name; // of the groups, or of the scope
    Index count = 0;
    Index messages = 0; // sent
    Index bytes = 0;    // sent

    std::string operation() const { return scope ? name : to_string(call); }
};

/// A number made of two, alike on all ranks: one step of splitmix64.
inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    std::uint64_t x = a + 0x9e3779b97f4a7c15 * (b + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// Ranks with a common order of collectives; `id` is the same on all of them.
struct TraceGroup {
    std::uint64_t id = 0;
    std::vector<int> members; // ranks of the trace, by their rank in the group
};

/// The events of one rank, up to a limit, and its counts without one. One thread uses it.
class TraceRecorder {
  public:
    /// The collective that is being moved on, to which messages that start now belong.
    struct Current {
        Index event = -1;
        int row = -1;
    };

    explicit TraceRecorder(TraceOptions options) : options_(options), begin_(now()) {}

    Index now() const { return trace_now(options_); }

    /// Keeps the event if there is room; its number, or -1.
    Index add(const TraceEvent& event) {
        if (size_ == options_.events) {
            full_at_ = dropped_++ == 0 ? event.start : full_at_;
            return -1;
        }
        if (size_ == Index(chunks_.size()) * chunk_size)
            chunks_.push_back(std::make_unique<TraceEvent[]>(std::size_t(chunk_size)));
        at(size_) = event;
        return size_++;
    }

    TraceEvent& at(Index number) { return chunks_[std::size_t(number / chunk_size)][std::size_t(number % chunk_size)]; }
    const TraceEvent& at(Index number) const {
        return chunks_[std::size_t(number / chunk_size)][std::size_t(number % chunk_size)];
    }
    Index size() const { return size_; }

    int row(bool scope, Call call, std::string_view name) {
        for (std::size_t row = 0; row < rows_.size(); ++row)
            if (rows_[row].scope == scope && rows_[row].call == call && rows_[row].name == name)
                return int(row);
        rows_.push_back({scope, call, std::string(name)});
        return int(rows_.size()) - 1;
    }
    TraceRow& row(int number) { return rows_[std::size_t(number)]; }
    const std::vector<TraceRow>& rows() const { return rows_; }

    int add_group(TraceGroup group) {
        groups_.push_back(std::move(group));
        return int(groups_.size()) - 1;
    }
    const TraceGroup& group(int number) const { return groups_[std::size_t(number)]; }

    Current exchange_current(Current current) noexcept { return std::exchange(current_, current); }
    Current current() const { return current_; }

    Index begin() const { return begin_; }
    Index dropped() const { return dropped_; }

    /// Until when everything was kept, up to `now`.
    Index complete_until(Index now) const { return dropped_ > 0 ? full_at_ : now; }

  private:
    static constexpr Index chunk_size = 1 << 12;

    TraceOptions options_;
    Index begin_;
    std::vector<std::unique_ptr<TraceEvent[]>> chunks_;
    Index size_ = 0;
    Index dropped_ = 0;
    Index full_at_ = 0;
    std::vector<TraceRow> rows_;
    std::vector<TraceGroup> groups_;
    Current current_;
};

/// The recorder of the calling rank, for scopes: that of its `Trace`, or none.
inline thread_local TraceRecorder* thread_trace_recorder = nullptr;

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
