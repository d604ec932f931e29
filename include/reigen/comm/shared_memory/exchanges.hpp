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
          parts_(operation.parts.empty() ? std::vector<Index>(std::size_t(size()), operation.in_size)
                                         : std::vector<Index>(operation.parts.begin(), operation.parts.end())),
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

/// Every rank shows each other one what is for that one. How long that is only the two know, so all tell in the first
/// step how many steps they need.
class SlotAllToAll final : public SlotPlan {
  public:
    SlotAllToAll(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation),
          out_parts_(operation.parts.begin(), operation.parts.end()),
          in_parts_(operation.in_parts.begin(), operation.in_parts.end()),
          out_starts_(starts_of(out_parts_)),
          in_starts_(starts_of(in_parts_)),
          room_(payload_bytes() / size() / width()),
          steps_(1 + (std::max(std::ranges::max(out_parts_), std::ranges::max(in_parts_)) + room_ - 1) / room_) {}

    /// Whether a slot has room for the numbers that the first step carries, and for an element for each rank.
    static bool fits(int ranks, const SlotShape& shape) { return shape.payload >= Index(sizeof(Index)) * ranks; }

    Index steps() const { return steps_; }

    void fill(Index step, std::byte* payload) {
        if (step == 0) {
            std::memcpy(payload, out_parts_.data(), out_parts_.size() * sizeof(Index));
            return;
        }
        for (int peer = 0; peer < size(); ++peer)
            if (const auto [first, count] = chunk(out_parts_, peer, step); count > 0) {
                const std::byte* const from = operation().in + (out_starts_[std::size_t(peer)] + first) * width();
                std::byte* const to = peer == rank() ? out(peer, first) : payload + place(peer);
                std::memcpy(to, from, std::size_t(count * width()));
            }
    }

    void meet(int peer) {
        Index gives = 0;
        std::memcpy(&gives, payload(peer) + std::size_t(rank()) * sizeof(Index), sizeof(Index));
        const Index takes = in_parts_[std::size_t(peer)];
        if (gives != takes)
            throw ShapeError(concat(to_string(operation()), ": rank ", peer, " gives ", gives, " elements, rank ",
                                    rank(), " takes ", takes));
        steps_ = std::max(steps_, Index(header(peer).steps));
    }

    void take(Index step) {
        if (step == 0)
            return;
        for (int peer = 0; peer < size(); ++peer)
            if (const auto [first, count] = chunk(in_parts_, peer, step); peer != rank() && count > 0)
                std::memcpy(out(peer, first), payload(peer) + place(rank()), std::size_t(count * width()));
    }

  private:
    Chunk chunk(const std::vector<Index>& parts, int peer, Index step) const {
        const Index all = parts[std::size_t(peer)];
        const Index first = std::min(all, (step - 1) * room_);
        return {first, std::min(room_, all - first)};
    }

    std::byte* out(int peer, Index element) const {
        return operation().out + (in_starts_[std::size_t(peer)] + element) * width();
    }

    Index place(int to) const { return Index(to) * room_ * width(); }

    std::vector<Index> out_parts_;
    std::vector<Index> in_parts_;
    std::vector<Index> out_starts_;
    std::vector<Index> in_starts_;
    Index room_; // elements for each rank in a slot
    Index steps_;
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
