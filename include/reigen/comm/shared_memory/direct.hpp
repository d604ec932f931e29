#pragma once

#include <reigen/comm/collectives/reduce.hpp>
#include <reigen/comm/collectives/schedule.hpp>
#include <reigen/comm/shared_memory/collective.hpp>
#include <reigen/comm/shared_memory/direct_limits.hpp>
#include <reigen/core/buffer.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// What a rank does in a collective whose ranks read each other's own memory: the base of all such plans. They have
///
///     static constexpr DirectLimits limits  for the bytes of the whole
///     static constexpr Index reads          steps in which ranks read
///     const std::byte* shown() const        what the others read of
///     Index shown_size() const              elements
///     void take(Index step)
class DirectPlan : public SlotPlan {
  public:
    DirectPlan(SlotUse& use, const Operation& operation) : SlotPlan(use, operation), met_(std::size_t(size())) {}

    void meet(int peer, SharedAddress memory) { met_[std::size_t(peer)] = memory; }

    bool all_in_place() const {
        return std::ranges::all_of(met_, [](SharedAddress memory) { return memory.in_place(); });
    }

  protected:
    /// Copies elements of a peer's memory.
    void read(int peer, Index first, std::byte* to, Index count) {
        if (count > 0)
            peer_memory().read(peer, met_[std::size_t(peer)], first * width(), to, count * width());
    }

    /// to[i] = the sum over all ranks of their elements first + i, of which this rank has its own at `own`.
    ///
    /// In pieces that stay in the second cache, for memory that the system has to copy.
    void sum(Index first, Index count, const std::byte* own, std::byte* to) {
        const Index piece = piece_bytes() / width();
        for (Index done = 0; done < count; done += piece) {
            const Index n = std::min(piece, count - done);
            terms().clear();
            for (int r = 0; r < size(); ++r)
                terms().push_back(r == rank() ? own + done * width() : term(r, first + done, n));
            reduce_in_order(operation().type, operation().reduction, terms(), n, to + done * width());
        }
    }

  private:
    /// Of each other rank's terms at once: whole lines, so that elements lie as their type wants them.
    Index piece_bytes() const {
        constexpr Index of_all = Index(256) << 10;
        return std::max<Index>(64, of_all / (size() - 1) / 64 * 64);
    }

    /// Elements of a peer, where they lie or copied to where this rank has room for them.
    const std::byte* term(int peer, Index first, Index count) {
        const SharedAddress memory = met_[std::size_t(peer)];
        if (memory.in_place())
            return peer_memory().at(peer, memory) + first * width();
        if (scratch_.empty()) {
            const MemoryScope scope(MemoryUse::messages);
            scratch_ = Buffer<std::byte>((size() - 1) * piece_bytes());
        }
        std::byte* const place = scratch_.data() + Index(peer < rank() ? peer : peer - 1) * piece_bytes();
        read(peer, first, place, count);
        return place;
    }

    std::vector<SharedAddress> met_; // of each rank; this rank's own too
    Buffer<std::byte> scratch_;
};

/// Every rank reads its slice of all vectors and sums it in place, then reads the others' sums: nobody reads of a
/// rank's vector but its own slice before that, and that slice is what this rank overwrites.
class DirectAllReduce final : public DirectPlan {
  public:
    DirectAllReduce(SlotUse& use, const Operation& operation)
        : DirectPlan(use, operation), parts_(balanced_parts(operation.out_size, size())), starts_(starts_of(parts_)) {}

    /// Through slots one of 16 MiB takes 3.3 ms, by copies of the system 4.6.
    static constexpr DirectLimits limits = {Index(128) << 10, DirectLimits::never};
    static constexpr Index reads = 2;

    const std::byte* shown() const { return operation().out; }
    Index shown_size() const { return operation().out_size; }

    void take(Index step) {
        if (step == 0)
            sum(starts_[std::size_t(rank())], parts_[std::size_t(rank())], out(rank()), out(rank()));
        else
            for_each_peer(
                [this](int peer) { read(peer, starts_[std::size_t(peer)], out(peer), parts_[std::size_t(peer)]); });
    }

  private:
    std::byte* out(int r) const { return operation().out + starts_[std::size_t(r)] * width(); }

    std::vector<Index> parts_;
    std::vector<Index> starts_;
};

/// Every rank reads its part of all vectors and sums it.
class DirectReduceScatter final : public DirectPlan {
  public:
    DirectReduceScatter(SlotUse& use, const Operation& operation)
        : DirectPlan(use, operation),
          first_(operation.parts.empty() ? rank() * operation.out_size
                                         : sum_of(operation.parts.first(std::size_t(rank())))) {}

    static constexpr DirectLimits limits = {Index(32) << 10, Index(8) << 20};
    static constexpr Index reads = 1;

    const std::byte* shown() const { return operation().in; }
    Index shown_size() const { return operation().in_size; }

    void take(Index) { sum(first_, operation().out_size, operation().in + first_ * width(), operation().out); }

  private:
    Index first_; // of this rank's part
};

/// Every rank reads the others' parts.
class DirectAllGather final : public DirectPlan {
  public:
    DirectAllGather(SlotUse& use, const Operation& operation)
        : DirectPlan(use, operation),
          parts_(parts_of(operation, operation.out_size, size())),
          starts_(starts_of(parts_)) {}

    /// 64 KiB go through slots in 5.8 us, in place in 6.9; 1 MiB in 98 us and 82.
    static constexpr DirectLimits limits = {Index(256) << 10, Index(2) << 20};
    static constexpr Index reads = 1;

    const std::byte* shown() const { return operation().in; }
    Index shown_size() const { return operation().in_size; }

    void take(Index) {
        for_each_peer([this](int peer) { read(peer, 0, out(peer), parts_[std::size_t(peer)]); });
        if (operation().in_size > 0 && out(rank()) != operation().in)
            std::memcpy(out(rank()), operation().in, std::size_t(operation().in_size * width()));
    }

  private:
    std::byte* out(int r) const { return operation().out + starts_[std::size_t(r)] * width(); }

    std::vector<Index> parts_;
    std::vector<Index> starts_;
};

/// Every rank reads the root's vector.
class DirectBroadcast final : public DirectPlan {
  public:
    using DirectPlan::DirectPlan;

    /// Through slots one of 16 MiB takes 2.3 ms, by copies of the system 3.9.
    static constexpr DirectLimits limits = {Index(32) << 10, DirectLimits::never};
    static constexpr Index reads = 1;

    const std::byte* shown() const { return operation().out; }
    Index shown_size() const { return operation().out_size; }

    void take(Index) {
        if (rank() != operation().peer)
            read(operation().peer, 0, operation().out, operation().out_size);
    }
};

/// The ranks tell where their memory lies; where all can read it they do, else what is to move goes through slots.
///
///     step      0                       1, ...      last
///     fills     where its memory lies   -           -
///     takes     what it wants of it     likewise    -      all have read: the memory may be changed again
template <class Direct, class Otherwise>
class DirectOr final : public SlotPlan {
  public:
    DirectOr(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation), direct_(use, operation), otherwise_(use, operation) {}

    Index steps() const { return 1 + (goes_direct_ ? Direct::reads : otherwise_.steps()); }
    bool takes_from(int peer) const { return met_ && !goes_direct_ ? otherwise_.takes_from(peer) : peer != rank(); }

    void fill(Index step, std::byte* payload) {
        if (step == 0) {
            const SharedAddress mine = peer_memory().address_of(direct_.shown(), direct_.shown_size() * width());
            direct_.meet(rank(), mine);
            std::memcpy(payload, &mine, sizeof mine);
        } else if (!goes_direct_)
            otherwise_.fill(step - 1, payload);
    }

    void meet(int peer) {
        SharedAddress theirs;
        std::memcpy(&theirs, payload(peer), sizeof theirs);
        direct_.meet(peer, theirs);
    }

    void take(Index step) {
        if (step == 0) {
            met_ = true;
            goes_direct_ = Direct::limits.read(peer_memory(), direct_.all_in_place(), whole_bytes());
        }
        if (goes_direct_ && step < Direct::reads)
            direct_.take(step);
        if (!goes_direct_ && step > 0)
            otherwise_.take(step - 1);
    }

  private:
    Direct direct_;
    Otherwise otherwise_;
    bool met_ = false;
    bool goes_direct_ = true;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
