#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/shared_memory/peer_memory.hpp>
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
    PeerMemory peer_memory = {};
    std::uint64_t first_step = 0; // of the collective whose turn it is
    std::uint64_t step = 0;       // that it has come to
    std::uint64_t begun = 0;      // collectives
    std::uint64_t ended = 0;
    std::string broken = {}; // why one of them did not come to its end
    std::vector<const std::byte*> terms = {};
};

/// Bytes of what all ranks of a collective have as much of; 0 where each has its own.
inline Index whole_bytes(const Operation& operation) {
    switch (operation.call) {
    case Call::reduce_scatter:
        return operation.in_size * size_of(operation.type);
    case Call::all_to_all:
        return 0;
    default:
        return operation.out_size * size_of(operation.type);
    }
}

/// What a rank does in each step of a collective: the base of all plans, with what they use. A plan has
///
///     Index steps() const                   at least one; may grow while the first one is taken
///     void fill(Index step, std::byte*)     writes into this rank's slot what others want of it
///     void take(Index step)                 takes from theirs what it wants of them
class SlotPlan {
  public:
    SlotPlan(SlotUse& use, const Operation& operation) : use_(use), operation_(operation) {
        operation_.parts = {};
        operation_.in_parts = {};
    }

    /// Whether this rank waits for what a peer fills its slot with.
    bool takes_from(int peer) const { return peer != rank(); }

    /// Takes notice of what a peer shows in the first step.
    void meet(int peer) { static_cast<void>(peer); }

    /// Without the parts, which need not outlive its start.
    const Operation& operation() const { return operation_; }

  protected:
    Index width() const { return size_of(operation_.type); }
    Index whole_bytes() const { return detail::whole_bytes(operation_); }
    int rank() const { return use_.slots.rank(); }
    int size() const { return use_.slots.size(); }
    Index payload_bytes() const { return use_.slots.shape().payload; }

    /// Bytes of a chunk of a range of so many, at most.
    ///
    /// What needs few steps goes with whole slots: 256 KiB with two, in 29 us instead of 36 with four of half the size.
    /// What goes round the slots again and again has them stay in the second cache besides the range itself: an
    /// all-reduce of 16 MiB between two ranks takes 3.4 ms instead of 4.5. (Xeon, Emerald Rapids)
    Index chunk_bytes(Index range) const {
        constexpr Index least = Index(16) << 10;
        const Index quarter = payload_bytes() / 4 / 64 * 64;
        return range <= 2 * payload_bytes() || quarter < least ? payload_bytes() : quarter;
    }
    std::vector<const std::byte*>& terms() { return use_.terms; }
    const PeerMemory& peer_memory() const { return use_.peer_memory; }

    /// What a peer has filled its slot with in the step that is being taken.
    const std::byte* payload(int peer) const { return use_.slots.payload(peer, use_.step); }
    const SlotHeader& header(int peer) const { return use_.slots.header(peer, use_.step); }

    /// The other ranks in the order r + 1, r + 2, ..., so that not all of them read of the same one.
    template <class Visit>
    void for_each_peer(Visit visit) const {
        for (int step = 1; step < size(); ++step)
            visit((rank() + step) % size());
    }

  private:
    SlotUse& use_;
    Operation operation_;
};

/// A collective over shared memory, in steps: a rank fills its slot with what others want of it, and takes from theirs
/// what it wants of them, as soon as they have filled theirs.
///
///     fill 0, take 0, fill 1, take 1, ...
///
/// The collectives of a group go through its slots one after the other, in the order of their start.
template <class Plan>
class SlotCollective final : public Started {
  public:
    SlotCollective(SlotUse& use, const Operation& operation) : use_(use), plan_(use, operation), number_(use.begun++) {}

    ~SlotCollective() override { revoke(); }

    bool advance() override {
        while (!complete_) {
            if (!is_first())
                return false;
            if (!filled_ && !fill_slot())
                return false;
            if (!take_slots())
                return false;
            filled_ = false;
            ++use_.step;
            if (Index(use_.step - use_.first_step) == plan_.steps())
                finish();
        }
        return true;
    }

    /// Others never write into the memory of the operation.
    bool revoke() noexcept override {
        if (!std::exchange(complete_, true)) {
            if (use_.broken.empty())
                use_.broken = to_string(operation()) + ", which was given up";
            use_.slots.give_up();
        }
        return true;
    }

    std::string waits_for() const override {
        std::string text;
        for (int peer = 0; peer < size(); ++peer)
            if (is_missing(peer))
                text += concat(text.empty() ? "rank " : ", rank ", peer);
        return concat(text.empty() ? "an earlier collective" : text, " in ", to_string(operation()));
    }

  private:
    static constexpr int looks = 400; // about a microsecond, before a waiting rank looks elsewhere

    const Operation& operation() const { return plan_.operation(); }
    int rank() const { return use_.slots.rank(); }
    int size() const { return use_.slots.size(); }

    bool is_first() const {
        if (!use_.broken.empty()) [[unlikely]]
            throw CommunicationError("after " + use_.broken);
        return use_.ended == number_;
    }

    /// Looks until `condition` holds for all peers, for a moment where the rank has nothing else to do.
    template <class Condition>
    bool all_peers(Condition condition) {
        for (int look = operation().blocks ? looks : 1; look > 0; --look) {
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
        if (!all_peers([this](int peer) { return use_.slots.has_emptied(peer, use_.step); }))
            return false;
        SlotHeader& header = use_.slots.own_header(use_.step);
        header.bytes = std::uint64_t(whole_bytes(operation()));
        header.call = call_word();
        header.steps = std::uint32_t(plan_.steps());
        plan_.fill(Index(use_.step - use_.first_step), use_.slots.own_payload(use_.step));
        use_.slots.publish(use_.step);
        filled_ = true;
        return true;
    }

    bool take_slots() {
        if (!all_peers([this](int peer) { return !plan_.takes_from(peer) || use_.slots.has_filled(peer, use_.step); }))
            return false;
        const auto step = Index(use_.step - use_.first_step);
        if (step == 0)
            for (int peer = 0; peer < size(); ++peer)
                if (plan_.takes_from(peer)) {
                    compare(peer);
                    plan_.meet(peer);
                }
        plan_.take(step);
        return true;
    }

    /// Call, element type, reduction and root in one number.
    std::uint32_t call_word() const {
        return std::uint32_t(operation().call) | std::uint32_t(operation().type) << 4 |
               std::uint32_t(operation().reduction) << 8 |
               (operation().call == Call::broadcast ? std::uint32_t(operation().peer) << 10 : 0);
    }

    void compare(int peer) const {
        const SlotHeader& theirs = use_.slots.header(peer, use_.step);
        if (theirs.call != call_word() || theirs.bytes != std::uint64_t(whole_bytes(operation()))) [[unlikely]]
            refuse(peer, theirs);
    }

    [[noreturn, gnu::cold]] void refuse(int peer, const SlotHeader& theirs) const {
        const std::string mine = to_string(operation());
        if (theirs.call != call_word())
            throw DisagreementError(concat(
                mine, ": rank ", peer, " calls something else, or for another element type, ", "reduction or root"));
        throw ShapeError(concat(mine, ": rank ", peer, " has ", theirs.bytes, " bytes, rank ", rank(), " ",
                                whole_bytes(operation())));
    }

    bool is_missing(int peer) const {
        return use_.ended == number_ && peer != rank() && plan_.takes_from(peer) &&
               use_.slots.header(peer, use_.step).filled.load(std::memory_order_acquire) <= use_.step;
    }

    void finish() {
        complete_ = true;
        use_.first_step = use_.step;
        ++use_.ended;
    }

    SlotUse& use_;
    Plan plan_;
    std::uint64_t number_;
    bool filled_ = false;
    bool complete_ = false;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
