#pragma once

#include <reigen/comm/backend/operation.hpp>
#include <reigen/comm/backend/shared_address.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What a rank has sent.
struct Traffic {
    Index messages = 0;
    Index bytes = 0;

    Traffic operator+(Traffic more) const { return {messages + more.messages, bytes + more.bytes}; }
    Traffic operator-(Traffic before) const { return {messages - before.messages, bytes - before.bytes}; }
    bool operator==(const Traffic&) const = default;
};

/// Something in flight. Its destructor never communicates and never waits for another rank.
class Started {
  public:
    Started() = default;
    virtual ~Started() = default;
    Started(const Started&) = delete;
    Started& operator=(const Started&) = delete;

    /// Moves what can move now, without waiting; true once complete. Throws what ended it.
    virtual bool advance() = 0;

    /// Takes it back; true when nobody will touch its memory any more.
    virtual bool revoke() noexcept = 0;

    /// The rank waits for it from now on, doing nothing else, or no longer: for those who account for its time.
    virtual void waiting(bool begins) noexcept { static_cast<void>(begins); }

    /// Whom it waits for, in what: "rank 1 in receive of 4 float, tag 0".
    virtual std::string waits_for() const = 0;
};

/// One message in flight.
///
/// A receive with `Operation::lend` over a backend that `lends` is complete as soon as the sender's memory can be
/// read. `borrow` gives that memory, once; `give_back` lets the sender go on. Nothing may wait between the two.
class Message : public Started {
  public:
    virtual const std::byte* borrow() { return nullptr; }
    virtual void give_back() noexcept {}
};

/// A way for ranks to exchange bytes; `Communicator` is its face.
///
/// A new backend gives rank, size, start_message, split and start_collective, which for one without collectives of its
/// own is `start_by_messages(*this, operation)`: then every collective comes past its start_message.
/// Arguments are validated and ordered by `Communicator`; one thread of a rank uses a backend.
class Backend {
  public:
    Backend() = default;
    virtual ~Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    /// The number that one of these ranks has in the world, of which this may be a part: for messages to people.
    virtual int origin(int rank) const { return rank; }

    /// The machine of the calling rank: the first of these ranks that runs there.
    virtual int node() const { return 0; }

    /// Starts a send or receive of exactly as many bytes as the other side's. Messages between two ranks with equal
    /// tags arrive in the order in which they were started.
    virtual std::unique_ptr<Message> start_message(const Operation& operation) = 0;

    virtual std::unique_ptr<Started> start_collective(const Operation& operation) = 0;

    /// Collective: one group a colour. `members` are the ranks of this rank's colour, in their new order.
    virtual std::shared_ptr<Backend> split(int color, std::span<const int> members) = 0;

    /// Whether collectives are compared before they begin, so that it is worth telling what else must be alike.
    virtual bool compares() const { return false; }

    /// How the ranks reach each other, in a few words for people.
    virtual std::string description() const { return "a backend of the program's own"; }

    /// Whether a receive from this rank may read the sender's memory in place.
    virtual bool lends(int peer) const { return static_cast<void>(peer), false; }

    /// Whether ranks can read of each other's memory where it lies, of what `address_of` says they can; alike on all.
    virtual bool reads_in_place() const { return false; }

    virtual SharedAddress address_of(const std::byte* memory, Index bytes) const {
        return static_cast<void>(memory), static_cast<void>(bytes), SharedAddress();
    }

    /// Where this rank sees such memory of another one.
    virtual const std::byte* in_place(int rank, SharedAddress memory) const {
        return static_cast<void>(rank), static_cast<void>(memory), nullptr;
    }

    /// `start_message`, counted.
    std::unique_ptr<Message> message(const Operation& operation);

    virtual Traffic traffic() const { return traffic_; }

    /// Counts what is sent by no message, as messages would have carried it, and tells whoever wanted to see those.
    inline void account(const Operation& operation, Traffic sent);

    /// A collective below has sent so much without messages: for wrappers that account for them.
    virtual void take_note(Traffic sent) { static_cast<void>(sent); }

  private:
    inline void count(Traffic sent);

    Traffic traffic_;
};

namespace detail {
inline thread_local Traffic thread_traffic;
} // namespace detail

/// What the calling rank has sent over all its communicators.
inline Traffic traffic_of_rank() {
    return detail::thread_traffic;
}

inline std::unique_ptr<Message> Backend::message(const Operation& operation) {
    if (operation.call == Call::send)
        count({1, operation.in_size * size_of(operation.type)});
    return start_message(operation);
}

inline void Backend::account(const Operation& operation, Traffic sent) {
    if (!operation.counted)
        return;
    count(sent);
    if (operation.messages != nullptr)
        operation.messages->take_note(sent);
}

inline void Backend::count(Traffic sent) {
    traffic_ = traffic_ + sent;
    detail::thread_traffic = detail::thread_traffic + sent;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
