#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/runs.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A contiguous range of indices.
struct Range {
    Index first = 0;
    Index count = 0;

    Index end() const { return first + count; }
    bool operator==(const Range&) const = default;
};

/// Rank `rank`'s share of n items in units of `grain`: shares differ by at most one unit, the larger come first, the
/// last unit may be short.
///
///     balanced_range(14, 4, r)     0-3 | 4-7 | 8-10 | 11-13
///     balanced_range(14, 4, r, 4)  0-3 | 4-7 | 8-11 | 12-13
inline Range balanced_range(Index n, int ranks, int rank, Index grain = 1) {
    require(n >= 0 && ranks >= 1 && rank >= 0 && rank < ranks && grain >= 1, "balanced_range: rank ", rank, " of ",
            ranks, " with ", n, " items by ", grain);
    grain = std::min(grain, std::max<Index>(n, 1)); // the same shares, and nothing overflows
    const Index units = n / grain + (n % grain != 0);
    const auto begin_of = [&](Index r) {
        return std::min(n, (r * (units / ranks) + std::min(r, units % ranks)) * grain);
    };
    const Index first = begin_of(rank);
    return {first, begin_of(rank + 1) - first};
}

/// n items over the ranks of a group: which of them each rank holds, and in which order.
///
/// Every item is held by some rank. Where several hold the same item it is a copy, and the first of them is its owner.
/// A handle that is cheap to copy; its content never changes.
class Partition {
  public:
    Partition() : Partition(whole(0)) {}

    /// All n on one rank: what an axis is that no mesh axis cuts.
    static Partition whole(Index n) { return balanced(n, 1); }

    /// Shares of whole grains that differ by at most one grain, larger first.
    static Partition balanced(Index n, int ranks, Index grain = 1) {
        require(n >= 0 && ranks >= 1 && grain >= 1, "Partition: ", n, " items over ", ranks, " ranks by ", grain,
                "; want none or more items, one or more ranks, grains of one or more");
        std::vector<Runs> runs;
        for (int rank = 0; rank < ranks; ++rank) {
            const Range range = balanced_range(n, ranks, rank, grain);
            runs.push_back(Runs::range(range.first, range.count));
        }
        return Partition(n, std::move(runs), false);
    }

    /// The first sizes[0] items, the next sizes[1], and so on.
    static Partition of_sizes(std::span<const Index> sizes) {
        require(!sizes.empty(), "Partition: no rank");
        std::vector<Runs> runs;
        Index n = 0;
        for (const Index size : sizes) {
            require<ShapeError>(size >= 0, "Partition: a rank with ", size, " items");
            runs.push_back(Runs::range(n, size));
            n = detail::sum_of_sizes(n, size, "Partition");
        }
        return Partition(n, std::move(runs), false);
    }

    static Partition of_sizes(std::initializer_list<Index> sizes) {
        return of_sizes(std::span<const Index>(sizes.begin(), sizes.size()));
    }

    /// Any runs, as long as together they hold each of 0 ... n - 1, and no rank holds one twice.
    static Partition of_runs(Index n, std::vector<Runs> runs) {
        require(n >= 0 && !runs.empty(), "Partition: ", n, " items over ", runs.size(),
                " ranks; want none or more items, one or more ranks");
        require_enough(n, runs);
        std::vector<int> owner(std::size_t(n), -1);
        std::vector<int> last_holder(std::size_t(n), -1);
        bool overlaps = false;
        for (std::size_t rank = 0; rank < runs.size(); ++rank)
            for (const Run& piece : runs[rank].pieces())
                for (Index i = 0; i < piece.count; ++i)
                    overlaps |= claim(owner, last_holder, piece[i], int(rank));
        const auto missing = std::find(owner.begin(), owner.end(), -1);
        require<ShapeError>(missing == owner.end(), "Partition: no rank holds ", missing - owner.begin(), " of ", n);
        return Partition(n, std::move(runs), overlaps);
    }

    Index size() const { return data_->size; }
    int ranks() const { return int(data_->runs.size()); }
    const Runs& runs(int rank) const {
        require(rank >= 0 && rank < ranks(), "Partition: rank ", rank, " of ", ranks());
        return data_->runs[std::size_t(rank)];
    }
    Index count(int rank) const { return runs(rank).size(); }

    /// Whether some item is held by more than one rank.
    bool overlaps() const { return data_->overlaps; }

    /// What this rank holds and no lower rank does: every item is owned by exactly one rank.
    Runs owned(int rank) const {
        if (!overlaps())
            return runs(rank);
        Runs mine;
        for (const Run& piece : runs(rank).pieces())
            for (Index i = 0; i < piece.count; ++i)
                if (!held_below(rank, piece[i]))
                    mine.append({piece[i], 1, 1});
        return mine;
    }

    /// How many items each rank holds.
    std::vector<Index> counts() const {
        std::vector<Index> result;
        for (const Runs& held : data_->runs)
            result.push_back(held.size());
        return result;
    }

    /// Whether both hold the same items in the same order on every rank.
    bool operator==(const Partition& other) const {
        return data_ == other.data_ || (data_->size == other.data_->size && data_->runs == other.data_->runs);
    }

    /// For pieces of which the caller knows that they hold every item, once on each rank.
    static Partition of_checked_runs(Index n, std::vector<Runs> runs, bool overlaps) {
        return Partition(n, std::move(runs), overlaps);
    }

  private:
    struct Data {
        Index size;
        std::vector<Runs> runs;
        bool overlaps;
    };

    Partition(Index n, std::vector<Runs> runs, bool overlaps)
        : data_(std::make_shared<const Data>(Data{n, std::move(runs), overlaps})) {}

    /// Before memory is taken for n items: somebody may hold each of them.
    static void require_enough(Index n, const std::vector<Runs>& runs) {
        Index held = 0;
        for (const Runs& of_rank : runs)
            held = detail::sum_of_sizes(held, of_rank.size(), "Partition");
        require<ShapeError>(held >= n, "Partition: the ranks hold ", held, " of ", n);
    }

    /// Enters that `rank` holds `item`; whether another rank did before.
    static bool claim(std::vector<int>& owner, std::vector<int>& last_holder, Index item, int rank) {
        require<ShapeError>(item < Index(owner.size()), "Partition: rank ", rank, " holds ", item, " of ",
                            owner.size());
        int& last = last_holder[std::size_t(item)];
        require<ShapeError>(last != rank, "Partition: rank ", rank, " holds ", item, " twice");
        last = rank;
        int& first = owner[std::size_t(item)];
        const bool again = first >= 0;
        if (!again)
            first = rank;
        return again;
    }

    bool held_below(int rank, Index item) const {
        return std::any_of(data_->runs.begin(), data_->runs.begin() + rank,
                           [item](const Runs& runs) { return runs.find(item).has_value(); });
    }

    std::shared_ptr<const Data> data_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
