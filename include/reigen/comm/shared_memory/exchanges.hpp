#pragma once

#include <reigen/comm/collectives/schedule.hpp>
#include <reigen/comm/shared_memory/chunks.hpp>
#include <reigen/comm/shared_memory/collective.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Every rank shows its part, and copies those of the others.
class SlotAllGather final : public SlotPlan {
  public:
    SlotAllGather(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation),
          parts_(parts_of(operation, operation.out_size, size())),
          starts_(starts_of(parts_)),
          chunks_(std::ranges::max(parts_), width(), payload_bytes()) {}

    Index steps() const { return chunks_.steps(); }

    void fill(Index step, std::byte* payload) {
        const auto [first, count] = chunks_.of(operation().in_size, step);
        const std::byte* const mine = operation().in + first * width();
        if (count == 0)
            return;
        std::memcpy(payload, mine, std::size_t(count * width()));
        if (std::byte* const place = out(rank(), first); place != mine)
            std::memcpy(place, mine, std::size_t(count * width()));
    }

    void take(Index step) {
        for (int peer = 0; peer < size(); ++peer)
            if (const auto [first, count] = chunks_.of(parts_[std::size_t(peer)], step); peer != rank() && count > 0)
                std::memcpy(out(peer, first), payload(peer), std::size_t(count * width()));
    }

  private:
    std::byte* out(int r, Index element) const {
        return operation().out + (starts_[std::size_t(r)] + element) * width();
    }

    std::vector<Index> parts_;
    std::vector<Index> starts_;
    Chunks chunks_;
};

/// The root shows its vector, the others copy it; it goes ahead of them as far as there are slots.
class SlotBroadcast final : public SlotPlan {
  public:
    SlotBroadcast(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation), chunks_(operation.out_size, width(), payload_bytes()) {}

    Index steps() const { return chunks_.steps(); }
    bool takes_from(int peer) const { return peer == operation().peer && peer != rank(); }

    void fill(Index step, std::byte* payload) {
        const auto [first, count] = chunks_.of(operation().out_size, step);
        if (rank() == operation().peer && count > 0)
            std::memcpy(payload, operation().out + first * width(), std::size_t(count * width()));
    }

    void take(Index step) {
        const auto [first, count] = chunks_.of(operation().out_size, step);
        if (rank() != operation().peer && count > 0)
            std::memcpy(operation().out + first * width(), payload(operation().peer), std::size_t(count * width()));
    }

  private:
    Chunks chunks_;
};

/// Every rank shows each other one what is for that one, or reads it in the other's memory. How long it is only the two
/// know, so all tell in the first step what they have for whom, where it lies, and how many steps they would need.
class AllToAll final : public SlotPlan {
  public:
    AllToAll(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation),
          out_parts_(operation.parts.begin(), operation.parts.end()),
          in_parts_(operation.in_parts.begin(), operation.in_parts.end()),
          out_starts_(starts_of(out_parts_)),
          in_starts_(starts_of(in_parts_)),
          room_(payload_bytes() / size() / width()),
          steps_(1 + (std::max(std::ranges::max(out_parts_), std::ranges::max(in_parts_)) + room_ - 1) / room_),
          peers_(std::size_t(size())) {}

    Index steps() const { return direct_ ? 2 : steps_; }

    void fill(Index step, std::byte* payload) {
        if (step == 0)
            tell(payload);
        else if (!direct_)
            for (int peer = 0; peer < size(); ++peer)
                if (const auto [first, count] = chunk(out_parts_, peer, step); count > 0 && peer != rank())
                    std::memcpy(payload + place(peer), out_of(peer, first), std::size_t(count * width()));
    }

    void meet(int peer) {
        const std::byte* const told = payload(peer);
        std::vector<Index> parts(out_parts_.size());
        Peer& theirs = peers_[std::size_t(peer)];
        std::memcpy(&theirs.memory, told, sizeof theirs.memory);
        std::memcpy(parts.data(), told + sizeof theirs.memory, parts.size() * sizeof(Index));
        theirs.first = starts_of(parts)[std::size_t(rank())];
        const Index gives = parts[std::size_t(rank())];
        const Index takes = in_parts_[std::size_t(peer)];
        if (gives != takes)
            throw ShapeError(concat(to_string(operation()), ": rank ", peer, " gives ", gives, " elements, rank ",
                                    rank(), " takes ", takes));
        longest_ = std::max(longest_, sum_of(parts));
        steps_ = std::max(steps_, Index(header(peer).steps));
    }

    void take(Index step) {
        if (step == 0) {
            direct_ = reads_directly();
            if (const Index own = out_parts_[std::size_t(rank())]; own > 0)
                std::memcpy(in_at(rank(), 0), out_of(rank(), 0), std::size_t(own * width()));
            if (direct_)
                for_each_peer([this](int peer) { read(peer); });
        } else if (!direct_)
            for_each_peer([&](int peer) {
                if (const auto [first, count] = chunk(in_parts_, peer, step); count > 0)
                    std::memcpy(in_at(peer, first), payload(peer) + place(rank()), std::size_t(count * width()));
            });
    }

    /// Whether a slot has room for what the first step tells.
    static bool fits(int ranks, Index payload) {
        return payload >= Index(sizeof(SharedAddress)) + ranks * Index(sizeof(Index));
    }

  private:
    static constexpr Index least_bytes = Index(32) << 10; // that one rank gives, as for other direct collectives
    static constexpr Index copied_bytes = Index(1) << 20;

    struct Peer {
        SharedAddress memory;
        Index first = 0; // of its elements for this rank
    };

    void tell(std::byte* payload) {
        longest_ = operation().in_size;
        SharedAddress& mine = peers_[std::size_t(rank())].memory;
        mine = peer_memory().address_of(operation().in, operation().in_size * width());
        std::memcpy(payload, &mine, sizeof mine);
        std::memcpy(payload + sizeof mine, out_parts_.data(), out_parts_.size() * sizeof(Index));
    }

    /// Alike on all ranks, which all have been told the same.
    bool reads_directly() const {
        const bool in_heaps = std::ranges::all_of(peers_, [](const Peer& peer) { return peer.memory.in_place(); });
        const Index bytes = longest_ * width();
        return bytes >= least_bytes && (in_heaps || (peer_memory().copies() && bytes >= copied_bytes));
    }

    void read(int peer) {
        const Peer& theirs = peers_[std::size_t(peer)];
        if (const Index count = in_parts_[std::size_t(peer)]; count > 0)
            peer_memory().read(peer, theirs.memory, theirs.first * width(), in_at(peer, 0), count * width());
    }

    Chunk chunk(const std::vector<Index>& parts, int peer, Index step) const {
        const Index all = parts[std::size_t(peer)];
        const Index first = std::min(all, (step - 1) * room_);
        return {first, std::min(room_, all - first)};
    }

    const std::byte* out_of(int peer, Index element) const {
        return operation().in + (out_starts_[std::size_t(peer)] + element) * width();
    }

    std::byte* in_at(int peer, Index element) const {
        return operation().out + (in_starts_[std::size_t(peer)] + element) * width();
    }

    Index place(int to) const { return Index(to) * room_ * width(); }

    std::vector<Index> out_parts_;
    std::vector<Index> in_parts_;
    std::vector<Index> out_starts_;
    std::vector<Index> in_starts_;
    Index room_; // elements for each rank in a slot
    Index steps_;
    std::vector<Peer> peers_;
    Index longest_ = 0; // elements that one rank gives
    bool direct_ = false;
};

/// The ranks show that they have come, and to what: all of a barrier, and of other collectives the beginning.
class SlotMeeting final : public SlotPlan {
  public:
    using SlotPlan::SlotPlan;

    Index steps() const { return 1; }
    void fill(Index, std::byte*) {}
    void take(Index) {}
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
