#pragma once

#include <reigen/comm/shared_memory/chunks.hpp>
#include <reigen/comm/shared_memory/collective.hpp>
#include <reigen/comm/shared_memory/direct_limits.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Every rank shows each other one what is for that one, or reads it in the other's memory. How long it is only the two
/// know, so all tell in the first step what they have for whom, where it lies, and how many steps they would need. A rank
/// that gives little shows the beginning of it at once, behind what it tells.
class AllToAll final : public SlotPlan {
  public:
    AllToAll(SlotUse& use, const Operation& operation) : SlotPlan(use, operation), peers_(std::size_t(size())) {
        Index longest = 0;
        for (std::size_t r = 0; r < peers_.size(); ++r) {
            const Index gives = operation.parts[r], takes = operation.in_parts[r];
            peers_[r] = {.gives = gives, .gives_from = given_, .takes = takes, .takes_to = taken_};
            given_ += gives;
            taken_ += takes;
            longest = std::max(longest, gives);
        }
        const Index later = longest - chunk(longest, given_, 0).count;
        steps_ = 1 + (later + room(given_) - 1) / room(given_);
    }

    Index steps() const { return direct_ ? 2 : steps_; }

    void fill(Index step, std::byte* payload) {
        if (step == 0)
            tell(payload);
        if (!direct_)
            for_each_peer([&](int peer) {
                const Peer& theirs = peers_[std::size_t(peer)];
                if (const auto [first, count] = chunk(theirs.gives, given_, step); count > 0)
                    std::memcpy(payload + place(rank(), peer, given_, step), out_at(theirs.gives_from + first),
                                bytes(count));
            });
    }

    void meet(int peer) {
        const std::byte* const told = payload(peer);
        Peer& theirs = peers_[std::size_t(peer)];
        std::memcpy(&theirs.memory, told, sizeof theirs.memory);
        for (int r = 0; r < size(); ++r) {
            Index part;
            std::memcpy(&part, told + sizeof theirs.memory + bytes_of_indices(r), sizeof part);
            theirs.first += r < rank() ? part : 0;
            theirs.given += part;
            if (r == rank() && part != theirs.takes) [[unlikely]]
                throw ShapeError(concat(to_string(operation()), ": rank ", peer, " gives ", part, " elements, rank ",
                                        rank(), " takes ", theirs.takes));
        }
        most_given_ = std::max(most_given_, theirs.given);
        steps_ = std::max(steps_, Index(header(peer).steps));
    }

    void take(Index step) {
        if (step == 0) {
            direct_ = reads_directly();
            if (const Peer& own = peers_[std::size_t(rank())]; own.gives > 0)
                std::memcpy(in_at(own.takes_to), out_at(own.gives_from), bytes(own.gives));
            if (direct_)
                for_each_peer([this](int peer) { read(peer, peers_[std::size_t(peer)]); });
        }
        if (!direct_)
            for_each_peer([&](int peer) {
                const Peer& theirs = peers_[std::size_t(peer)];
                if (const auto [first, count] = chunk(theirs.takes, theirs.given, step); count > 0)
                    std::memcpy(in_at(theirs.takes_to + first), payload(peer) + place(peer, rank(), theirs.given, step),
                                bytes(count));
            });
    }

    /// Whether a slot has room for what the first step tells.
    static bool fits(int ranks, Index payload) { return payload >= bytes_told(ranks); }

  private:
    /// For the bytes that one rank gives to all together.
    static constexpr DirectLimits limits = {Index(32) << 10, Index(2) << 20};

    /// What this rank and another have for each other, in elements.
    struct Peer {
        Index gives = 0; // to it
        Index gives_from = 0;
        Index takes = 0; // of it
        Index takes_to = 0;
        Index given = 0;           // by it to all ranks
        Index first = 0;           // of them for this rank
        SharedAddress memory = {}; // where they lie
    };

    static Index bytes_of_indices(int count) { return count * Index(sizeof(Index)); }
    static Index bytes_told(int ranks) { return Index(sizeof(SharedAddress)) + bytes_of_indices(ranks); }

    void tell(std::byte* payload) {
        most_given_ = std::max(most_given_, given_);
        const SharedAddress mine = peer_memory().address_of(operation().in, given_ * width());
        peers_[std::size_t(rank())].memory = mine;
        std::memcpy(payload, &mine, sizeof mine);
        for (int r = 0; r < size(); ++r)
            std::memcpy(payload + sizeof mine + bytes_of_indices(r), &peers_[std::size_t(r)].gives, sizeof(Index));
    }

    /// Alike on all ranks, which all have been told the same.
    bool reads_directly() const {
        const bool in_heaps = std::ranges::all_of(peers_, [](const Peer& peer) { return peer.memory.in_place(); });
        return limits.read(peer_memory(), in_heaps, most_given_ * width());
    }

    void read(int peer, const Peer& theirs) {
        if (theirs.takes > 0)
            peer_memory().read(peer, theirs.memory, theirs.first * width(), in_at(theirs.takes_to),
                               theirs.takes * width());
    }

    /// Elements for each rank in a slot of the first step, if the rank shows any then, and of a later one, of a rank that
    /// gives `given` to all together.
    Index first_room() const { return (payload_bytes() - bytes_told(size())) / (size() - 1) / width(); }
    Index room(Index given) const { return chunk_bytes(given * width()) / (size() - 1) / width(); }

    /// What a step moves of a part of `all` elements, from a rank that gives `given` to all together.
    Chunk chunk(Index all, Index given, Index step) const {
        const Index at_once = given * width() < limits.in_place ? std::min(all, first_room()) : 0;
        if (step == 0)
            return {0, at_once};
        const Index first = std::min(all, at_once + (step - 1) * room(given));
        return {first, std::min(room(given), all - first)};
    }

    /// Where in the slot of rank `from`, which gives `given` to all together, lies what is for rank `to`.
    Index place(int from, int to, Index given, Index step) const {
        const Index before = to < from ? to : to - 1;
        return step == 0 ? bytes_told(size()) + before * first_room() * width() : before * room(given) * width();
    }

    const std::byte* out_at(Index element) const { return operation().in + element * width(); }
    std::byte* in_at(Index element) const { return operation().out + element * width(); }
    std::size_t bytes(Index elements) const { return std::size_t(elements * width()); }

    std::vector<Peer> peers_;
    Index given_ = 0; // elements, by this rank
    Index taken_ = 0;
    Index steps_ = 1;
    Index most_given_ = 0; // by one rank
    bool direct_ = false;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
