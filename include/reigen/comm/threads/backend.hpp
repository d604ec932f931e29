#pragma once

#include <reigen/comm/collectives/cost.hpp>
#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/shared_memory/collectives.hpp>
#include <reigen/comm/threads/mailbox.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// The threads of one `run_threads`: who has left, and the first failure.
class Crew {
  public:
    explicit Crew(int size) : left_(std::size_t(size)) {}

    int size() const { return int(left_.size()); }

    void leave(int rank) { left_[std::size_t(rank)].store(true, std::memory_order_release); }
    bool has_left(int rank) const { return left_[std::size_t(rank)].load(std::memory_order_acquire); }

    /// Keeps the first failure; everybody who waits for anything hears of it.
    void fail(int rank, std::exception_ptr exception, const std::string& message) {
        const std::lock_guard lock(mutex_);
        if (exception_)
            return;
        exception_ = std::move(exception);
        reason_ = concat("rank ", rank, " failed: ", message);
        failed_.store(true, std::memory_order_release);
    }

    bool failed() const { return failed_.load(std::memory_order_acquire); }

    std::string reason() const {
        const std::lock_guard lock(mutex_);
        return reason_;
    }

    std::exception_ptr exception() const {
        const std::lock_guard lock(mutex_);
        return exception_;
    }

  private:
    std::vector<std::atomic<bool>> left_;
    std::atomic<bool> failed_ = false;
    mutable std::mutex mutex_;
    std::exception_ptr exception_;
    std::string reason_;
};

/// The slots of a group of threads.
class SlotMemory {
  public:
    explicit SlotMemory(int ranks)
        : shape_{4, std::max<Index>(slot_payload, 64 * Index(ranks))},
          bytes_(static_cast<std::byte*>(::operator new(std::size_t(ranks* shape_.bytes()), alignment))) {
        for (int rank = 0; rank < ranks; ++rank) {
            parts_.push_back(bytes_.get() + rank * shape_.bytes());
            Slots::prepare(parts_.back(), shape_);
        }
    }

    Slots of(int rank) const { return Slots(parts_, rank, shape_); }

  private:
    static constexpr auto alignment = std::align_val_t(alignof(SlotHeader));
    static constexpr Index slot_payload = 16384;

    struct Free {
        void operator()(std::byte* bytes) const { ::operator delete(bytes, alignment); }
    };

    SlotShape shape_;
    std::unique_ptr<std::byte, Free> bytes_;
    std::vector<std::byte*> parts_;
};

/// What the ranks of one group of threads share: a mailbox for each ordered pair, and slots for short collectives.
class ThreadHub {
  public:
    ThreadHub(std::shared_ptr<Crew> crew, std::vector<int> crew_ranks)
        : crew_(std::move(crew)),
          crew_ranks_(std::move(crew_ranks)),
          boxes_(crew_ranks_.size() * crew_ranks_.size()),
          slots_(size()) {}

    int size() const { return int(crew_ranks_.size()); }
    int crew_rank(int rank) const { return crew_ranks_[std::size_t(rank)]; }
    const Crew& crew() const { return *crew_; }
    Slots slots(int rank) const { return slots_.of(rank); }

    /// Why nothing will come from a rank of this group any more; empty where it may. Numbers ranks as `run_threads` does
    /// where it tells of the world, which may be others than this group's.
    std::string gone(int rank) const {
        if (crew_->failed())
            return crew_->reason();
        const int peer = crew_rank(rank);
        return crew_->has_left(peer) ? concat("rank ", peer, " of ", crew_->size(), " has returned") : std::string();
    }

    Mailbox& box(int from, int to) { return boxes_[std::size_t(from) * crew_ranks_.size() + std::size_t(to)]; }

    /// The group that the `order`-th split makes of these members; the first to come makes it, the last takes it away.
    std::shared_ptr<ThreadHub> child(int order, int color, std::span<const int> members) {
        const std::lock_guard lock(mutex_);
        Child& child = children_[{order, color}];
        if (!child.hub) {
            std::vector<int> ranks;
            for (const int member : members)
                ranks.push_back(crew_rank(member));
            child.hub = std::make_shared<ThreadHub>(crew_, std::move(ranks));
        }
        const auto hub = child.hub;
        if (++child.taken == int(members.size()))
            children_.erase({order, color});
        return hub;
    }

  private:
    struct Child {
        std::shared_ptr<ThreadHub> hub;
        int taken = 0;
    };

    std::shared_ptr<Crew> crew_;
    std::vector<int> crew_ranks_;
    std::vector<Mailbox> boxes_;
    SlotMemory slots_;
    std::mutex mutex_;
    std::map<std::pair<int, int>, Child> children_;
};

/// Either side of a delivery.
class ThreadMessage final : public Message {
  public:
    ThreadMessage(std::shared_ptr<ThreadHub> hub, int rank, const Operation& operation)
        : hub_(std::move(hub)), operation_(operation), box_(box(*hub_, rank, operation)) {
        const Index width = size_of(operation.type);
        delivery_ = operation.call == Call::send ? box_.offer(operation.in, operation.in_size * width, operation.tag)
                                                 : box_.await(operation.out_size * width, operation.tag);
    }

    ~ThreadMessage() override { revoke(); }

    bool advance() override {
        const bool gone = peer_is_gone();
        switch (delivery_->state.load(std::memory_order_acquire)) {
        case State::matched:
            if (operation_.call == Call::send)
                break;
            if (!operation_.lend)
                read();
            return true;
        case State::taken:
            return true;
        case State::mismatched:
            throw ShapeError(mismatch());
        case State::revoked:
            throw_peer_error();
        case State::reading:
            return false;
        case State::offered:
        case State::awaited:
            break;
        }
        if (gone)
            throw_peer_error();
        return false;
    }

    bool revoke() noexcept override {
        if (reading_)
            give_back();
        if (delivery_->state.load(std::memory_order_acquire) != State::taken)
            box_.withdraw(delivery_);
        return true;
    }

    std::string waits_for() const override { return concat("rank ", operation_.peer, " in ", to_string(operation_)); }

    const std::byte* borrow() override {
        reading_ = delivery_->swap_state(State::matched, State::reading);
        if (!reading_)
            throw_peer_error();
        return delivery_->data;
    }

    void give_back() noexcept override {
        reading_ = false;
        delivery_->state.store(State::taken, std::memory_order_release);
    }

  private:
    using State = Delivery::State;

    static Mailbox& box(ThreadHub& hub, int rank, const Operation& operation) {
        return operation.call == Call::send ? hub.box(rank, operation.peer) : hub.box(operation.peer, rank);
    }

    void read() {
        const std::byte* const data = borrow();
        if (operation_.out_size > 0)
            std::memcpy(operation_.out, data, std::size_t(delivery_->wanted_bytes));
        give_back();
    }

    std::string mismatch() const {
        const bool send = operation_.call == Call::send;
        return concat(to_string(operation_), send ? " to" : " from", " rank ", operation_.peer, ": ",
                      delivery_->sent_bytes, " bytes are sent, ", delivery_->wanted_bytes, " are expected");
    }

    /// Asked for before the delivery's state is looked at: what a rank did before it left is then seen.
    bool peer_is_gone() const {
        const Crew& crew = hub_->crew();
        return crew.has_left(hub_->crew_rank(operation_.peer)) || crew.failed();
    }

    [[noreturn]] void throw_peer_error() const {
        const std::string gone = hub_->gone(operation_.peer);
        throw PeerError(concat("waiting for ", waits_for(), ": ",
                               gone.empty() ? concat("rank ", operation_.peer, " has given up") : gone));
    }

    std::shared_ptr<ThreadHub> hub_;
    Operation operation_;
    Mailbox& box_;
    std::shared_ptr<Delivery> delivery_;
    bool reading_ = false;
};

} // namespace detail

namespace detail {

/// Tells a rank of a group of threads of the end of another one.
class CrewWatch final : public PeerWatch {
  public:
    explicit CrewWatch(std::shared_ptr<ThreadHub> hub) : hub_(std::move(hub)) {}

    std::string gone(int rank) const override { return hub_->gone(rank); }

  private:
    std::shared_ptr<ThreadHub> hub_;
};

/// A collective that begins when all ranks have come to the same one.
class MetFirst final : public Started {
  public:
    MetFirst(std::unique_ptr<Started> meeting, std::unique_ptr<Started> then)
        : meeting_(std::move(meeting)), then_(std::move(then)) {}

    bool advance() override {
        met_ = met_ || meeting_->advance();
        return met_ && then_->advance();
    }
    bool revoke() noexcept override {
        const bool meeting = meeting_->revoke();
        return then_->revoke() && meeting;
    }
    std::string waits_for() const override { return (met_ ? then_ : meeting_)->waits_for(); }

  private:
    std::unique_ptr<Started> meeting_;
    std::unique_ptr<Started> then_;
    bool met_ = false;
};

} // namespace detail

/// Ranks as threads of one process: a receiver copies, or adds, straight from the sender's memory. Short collectives go
/// through memory that all share, in a third of the time.
class ThreadBackend final : public Backend {
  public:
    ThreadBackend(std::shared_ptr<detail::ThreadHub> hub, int rank)
        : hub_(std::move(hub)), rank_(rank), slots_(hub_->slots(rank), std::make_unique<detail::CrewWatch>(hub_)) {}

    int rank() const override { return rank_; }
    int size() const override { return hub_->size(); }
    int origin(int rank) const override { return hub_->crew_rank(rank); }
    bool lends(int) const override { return true; }

    std::string description() const override {
        return concat("threads of one process; collectives up to ", slots_.shape().payload,
                      " bytes through shared slots, the rest read in place");
    }

    bool reads_in_place() const override { return size() > 1; }

    SharedAddress address_of(const std::byte* memory, Index) const override {
        const auto address = std::uint64_t(reinterpret_cast<std::uintptr_t>(memory));
        return {address, 1 + address};
    }

    const std::byte* in_place(int, SharedAddress memory) const override {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): another thread's pointer
        return reinterpret_cast<const std::byte*>(std::uintptr_t(memory.address));
    }

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        return std::make_unique<detail::ThreadMessage>(hub_, rank_, operation);
    }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        if (size() == 1 || operation.call == Call::agree)
            return start_by_messages(*this, operation);
        if (is_short(operation)) {
            account(operation, traffic_of(operation, rank(), size()));
            return slots_.start(operation);
        }
        return std::make_unique<detail::MetFirst>(slots_.meet(operation), start_by_messages(*this, operation));
    }

    std::shared_ptr<Backend> split(int color, std::span<const int> members) override {
        const auto self = std::find(members.begin(), members.end(), rank_);
        return std::make_shared<ThreadBackend>(hub_->child(splits_++, color, members), int(self - members.begin()));
    }

  private:
    /// Whether it takes a copy less than it takes messages; of an all_to_all only two ranks know how long their part is.
    bool is_short(const Operation& operation) const {
        return operation.call != Call::all_to_all && detail::whole_bytes(operation) <= slots_.shape().payload;
    }

    std::shared_ptr<detail::ThreadHub> hub_;
    int rank_;
    detail::SlotCollectives slots_;
    int splits_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
