#pragma once

#include <reigen/comm/collectives/reduce.hpp>
#include <reigen/comm/collectives/schedule.hpp>
#include <reigen/comm/shared_memory/chunks.hpp>
#include <reigen/comm/shared_memory/collective.hpp>

#include <cstring>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Every rank reads the whole vector of every other and sums all.
class OneShotAllReduce final : public SlotPlan {
  public:
    OneShotAllReduce(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation), chunks_(operation.out_size, width(), chunk_bytes(operation.out_size * width())) {}

    Index steps() const { return chunks_.steps(); }

    void fill(Index step, std::byte* payload) {
        const auto [first, count] = chunks_.of(operation().out_size, step);
        if (count > 0)
            std::memcpy(payload, operation().out + first * width(), std::size_t(count * width()));
    }

    void take(Index step) {
        const auto [first, count] = chunks_.of(operation().out_size, step);
        std::byte* const mine = operation().out + first * width();
        terms().clear();
        for (int r = 0; r < size(); ++r)
            terms().push_back(r == rank() ? mine : payload(r));
        reduce_in_order(operation().type, operation().reduction, terms(), count, mine);
    }

  private:
    Chunks chunks_;
};

/// Every rank sums its slice of all vectors, and reads the sums of the others: of one chunk while the next is summed.
///
///     step      0          1                  2
///     fills     chunk 0    chunk 1, sums 0    sums 1
///     takes     sums 0     sums 1, gather 0   gather 1
class TwoShotAllReduce final : public SlotPlan {
  public:
    TwoShotAllReduce(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation),
          chunks_(operation.out_size, width(),
                  chunk_bytes(operation.out_size * width()) * size() / (size() + 1) / 64 * 64 - 64) {}

    /// Whether it moves less than what its additional step costs, about half a microsecond: two ranks read as much
    /// either way, more ranks less, 2 (P - 1)/P of the vector instead of P - 1.
    static bool pays(Index bytes, int ranks) {
        constexpr Index bytes_of_a_step = 16384;
        return bytes * (ranks - 1) * (ranks - 2) > bytes_of_a_step * ranks;
    }

    Index steps() const { return chunks_.steps() + 1; }

    void fill(Index step, std::byte* payload) {
        const auto [first, count] = chunks_.of(operation().out_size, step);
        if (count > 0)
            std::memcpy(payload, at(first), std::size_t(count * width()));
        if (step == 0)
            return;
        const Chunk sums = slice(step - 1, rank());
        if (sums.count > 0)
            std::memcpy(payload + sums_offset(), at(sums.first), std::size_t(sums.count * width()));
    }

    void take(Index step) {
        sum(step);
        if (step > 0)
            gather(step - 1);
    }

  private:
    void sum(Index step) {
        const Chunk chunk = chunks_.of(operation().out_size, step);
        const Chunk mine = slice(step, rank());
        terms().clear();
        for (int r = 0; r < size(); ++r)
            terms().push_back(r == rank() ? at(mine.first) : payload(r) + (mine.first - chunk.first) * width());
        reduce_in_order(operation().type, operation().reduction, terms(), mine.count, at(mine.first));
    }

    void gather(Index step) {
        for (int peer = 0; peer < size(); ++peer)
            if (const Chunk sums = slice(step, peer); peer != rank() && sums.count > 0)
                std::memcpy(at(sums.first), payload(peer) + sums_offset(), std::size_t(sums.count * width()));
    }

    /// What a rank sums of a chunk.
    Chunk slice(Index step, int r) const {
        const auto [first, count] = chunks_.of(operation().out_size, step);
        const Index begin = count * r / size();
        return {first + begin, count * (r + 1) / size() - begin};
    }

    Index sums_offset() const { return chunks_.longest() * width(); }
    std::byte* at(Index element) const { return operation().out + element * width(); }

    Chunks chunks_;
};

/// Every rank shows each other one that one's part, and sums its own.
class SlotReduceScatter final : public SlotPlan {
  public:
    SlotReduceScatter(SlotUse& use, const Operation& operation)
        : SlotPlan(use, operation),
          parts_(parts_of(operation, operation.in_size, size())),
          starts_(starts_of(parts_)),
          chunks_(std::ranges::max(parts_), width(),
                  chunk_bytes(std::ranges::max(parts_) * width() * (size() - 1)) / (size() - 1) / 64 * 64) {}

    Index steps() const { return chunks_.steps(); }

    void fill(Index step, std::byte* payload) {
        for (int peer = 0; peer < size(); ++peer)
            if (const Chunk chunk = chunks_.of(parts_[std::size_t(peer)], step); peer != rank() && chunk.count > 0)
                std::memcpy(payload + place(rank(), peer), in(peer, chunk), std::size_t(chunk.count * width()));
    }

    void take(Index step) {
        const Chunk chunk = chunks_.of(operation().out_size, step);
        terms().clear();
        for (int r = 0; r < size(); ++r)
            terms().push_back(r == rank() ? in(r, chunk) : payload(r) + place(r, rank()));
        reduce_in_order(operation().type, operation().reduction, terms(), chunk.count,
                        operation().out + chunk.first * width());
    }

  private:
    /// Where in its slot a rank puts what is for another.
    Index place(int from, int to) const { return Index(to < from ? to : to - 1) * chunks_.longest() * width(); }

    const std::byte* in(int r, Chunk chunk) const {
        return operation().in + (starts_[std::size_t(r)] + chunk.first) * width();
    }

    std::vector<Index> parts_;
    std::vector<Index> starts_;
    Chunks chunks_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
