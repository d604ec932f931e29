#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/shared_memory/slots.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Who hears of the end of a rank otherwise than through its slots.
class PeerWatch {
  public:
    PeerWatch() = default;
    virtual ~PeerWatch() = default;
    PeerWatch(const PeerWatch&) = delete;
    PeerWatch& operator=(const PeerWatch&) = delete;

    /// Why nothing will come any more from a rank that `in` is waited for; empty where it may.
    virtual std::string gone(int rank) const { return static_cast<void>(rank), std::string(); }
};

/// What the collectives of one group have in common on one rank: its slots, and how far they have come.
struct SlotUse {
    Slots slots;
    std::unique_ptr<PeerWatch> watch = std::make_unique<PeerWatch>();
    std::uint64_t next_step = 0;
    std::uint64_t begun = 0; // collectives
    std::uint64_t ended = 0;
    std::string broken; // why one of them did not come to its end
    std::vector<const std::byte*> terms;
};

/// A collective over shared memory, in steps: a rank fills its slot with what others want of it, and takes from theirs
/// what it wants of them, as soon as they have filled theirs.
///
///     fill 0, take 0, fill 1, take 1, ...
///
/// The collectives of a group go through its slots one after the other, in the order of their start.
class SlotCollective : public Started {
  public:
    SlotCollective(SlotUse& use, const Operation& operation) : use_(use), operation_(operation), number_(use.begun++) {
        operation_.parts = {};
        operation_.in_parts = {};
    }

    ~SlotCollective() override {
        if (!complete())
            give_up();
    }

    bool advance() final {
        while (!complete()) {
            if (!is_first())
                return false;
            if (!filled_ && !fill_slot())
                return false;
            if (!take_slots())
                return false;
            filled_ = false;
            if (++step_ == steps())
                finish();
        }
        return true;
    }

    /// Others see copies alone, never the memory of the operation.
    bool revoke() noexcept override {
        if (!complete())
            give_up();
        return true;
    }

    std::string waits_for() const override {
        std::string text;
        for (int peer = 0; peer < slots().size(); ++peer)
            if (is_missing(peer))
                text += concat(text.empty() ? "rank " : ", rank ", peer);
        return concat(text.empty() ? "an earlier collective" : text, " in ", to_string(operation_));
    }

  protected:
    virtual Index steps() const = 0;
    virtual void fill(Index step, std::byte* payload) = 0;
    virtual bool takes_from(int peer) const { return peer != rank(); }
    virtual void take(Index step) = 0;

    /// Takes notice of what a peer shows in its first step.
    virtual void meet(int peer) { static_cast<void>(peer); }

    const Operation& operation() const { return operation_; }
    Index width() const { return size_of(operation_.type); }
    int rank() const { return use_.slots.rank(); }
    int size() const { return use_.slots.size(); }
    Index payload_bytes() const { return use_.slots.shape().payload; }
    std::vector<const std::byte*>& terms() { return use_.terms; }

    /// What a peer has filled its slot with in the step that is being taken.
    const std::byte* payload(int peer) const { return use_.slots.payload(peer, step()); }
    const SlotHeader& header(int peer) const { return use_.slots.header(peer, step()); }

  private:
    static constexpr int looks = 400; // about a microsecond, before a waiting rank looks elsewhere

    const Slots& slots() const { return use_.slots; }
    std::uint64_t step() const { return first_ + std::uint64_t(step_); }
    bool complete() const { return complete_; }

    bool is_first() {
        if (!use_.broken.empty()) [[unlikely]]
            throw CommunicationError("after " + use_.broken);
        if (use_.ended != number_)
            return false;
        first_ = use_.next_step;
        return true;
    }

    /// Looks until `condition` holds for all peers, for a moment where the rank has nothing else to do.
    template <class Condition>
    bool all_peers(Condition condition) {
        for (int look = operation_.blocks ? looks : 1; look > 0; --look) {
            bool all = true;
            for (int peer = 0; peer < size(); ++peer)
                all = all && (peer == rank() || condition(peer));
            if (all)
                return true;
        }
        refuse_the_dead(condition);
        return false;
    }

    /// A peer's end is asked for before its slots are looked at once more: what it did before is then seen.
    template <class Condition>
    void refuse_the_dead(Condition condition) {
        for (int peer = 0; peer < size(); ++peer) {
            const bool gave_up = use_.slots.has_given_up(peer);
            const std::string gone = gave_up ? concat("rank ", peer, " has given up") : use_.watch->gone(peer);
            if (!gone.empty() && peer != rank() && !condition(peer))
                throw PeerError(concat("waiting for ", waits_for(), ": ", gone));
        }
    }

    bool fill_slot() {
        if (!all_peers([this](int peer) { return use_.slots.has_emptied(peer, step()); }))
            return false;
        SlotHeader& header = use_.slots.own_header(step());
        header.bytes = std::uint64_t(whole_bytes());
        header.call = call_word();
        header.steps = std::uint32_t(steps());
        fill(step_, use_.slots.own_payload(step()));
        use_.slots.publish(step());
        filled_ = true;
        return true;
    }

    bool take_slots() {
        if (!all_peers([this](int peer) { return !takes_from(peer) || use_.slots.has_filled(peer, step()); }))
            return false;
        if (step_ == 0)
            for (int peer = 0; peer < size(); ++peer)
                if (takes_from(peer)) {
                    compare(peer);
                    meet(peer);
                }
        take(step_);
        return true;
    }

    /// Of what all ranks have as much.
    Index whole_bytes() const {
        switch (operation_.call) {
        case Call::reduce_scatter:
            return operation_.in_size * width();
        case Call::all_to_all:
            return 0;
        default:
            return operation_.out_size * width();
        }
    }

    /// Call, element type, reduction and root in one number.
    std::uint32_t call_word() const {
        return std::uint32_t(operation_.call) | std::uint32_t(operation_.type) << 4 |
               std::uint32_t(operation_.reduction) << 8 |
               (operation_.call == Call::broadcast ? std::uint32_t(operation_.peer) << 10 : 0);
    }

    void compare(int peer) const {
        const SlotHeader& theirs = header(peer);
        if (theirs.call != call_word() || theirs.bytes != std::uint64_t(whole_bytes())) [[unlikely]]
            refuse(peer, theirs);
    }

    [[noreturn, gnu::cold]] void refuse(int peer, const SlotHeader& theirs) const {
        const std::string mine = to_string(operation_);
        if (theirs.call != call_word())
            throw DisagreementError(concat(mine, ": rank ", peer, " calls something else, or for another element type, ",
                                           "reduction or root"));
        throw ShapeError(concat(mine, ": rank ", peer, " has ", theirs.bytes, " bytes, rank ", rank(), " ",
                                whole_bytes()));
    }

    bool is_missing(int peer) const {
        const SlotHeader& theirs = header(peer);
        return use_.ended == number_ && peer != rank() && takes_from(peer) &&
               theirs.filled.load(std::memory_order_acquire) <= step();
    }

    void finish() {
        complete_ = true;
        use_.next_step = first_ + std::uint64_t(step_);
        ++use_.ended;
    }

    void give_up() noexcept {
        complete_ = true;
        if (use_.broken.empty())
            use_.broken = to_string(operation_) + " that was given up";
        use_.slots.give_up();
    }

    SlotUse& use_;
    Operation operation_;
    std::uint64_t number_;
    std::uint64_t first_ = 0;
    Index step_ = 0;
    bool filled_ = false;
    bool complete_ = false;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
