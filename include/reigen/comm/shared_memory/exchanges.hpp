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
          chunks_(std::ranges::max(parts_), width(), chunk_bytes(std::ranges::max(parts_) * width())) {}

    Index steps() const { return chunks_.steps(); }

    void fill(Index step, std::byte* payload) {
        const auto [first, count] = chunks_.of(operation().in_size, step);
        if (count > 0)
            std::memcpy(payload, operation().in + first * width(), std::size_t(count * width()));
    }

    void take(Index step) {
        if (step == 0 && operation().in_size > 0 && out(rank(), 0) != operation().in)
            std::memcpy(out(rank(), 0), operation().in, std::size_t(operation().in_size * width()));
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
        : SlotPlan(use, operation), chunks_(operation.out_size, width(), std::min(payload_bytes(), most)) {}

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
    /// Bytes of a chunk: others read one while the root writes the next, 64 KiB in 8 us instead of 10.
    static constexpr Index most = Index(32) << 10;

    Chunks chunks_;
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
