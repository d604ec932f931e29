#pragma once

#include <reigen/core/runs.hpp>
#include <reigen/kernel/attention_panel.hpp>
#include <reigen/kernel/mask.hpp>

#include <algorithm>
#include <limits>
#include <span>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How much of a tile of scores the mask lets through.
enum class Coverage : std::uint8_t { empty, mixed, full };

namespace detail {

/// A place in runs, to go through them tile by tile. Copies are independent; allocates nothing.
class RunWalker {
  public:
    explicit RunWalker(const Runs& runs) : pieces_(runs.pieces()) {}

    /// Calls visit(run) for the runs that hold the next `count` indices, and moves behind them.
    template <class Visit>
    void next(Index count, Visit visit) {
        while (count > 0) {
            const Run& piece = pieces_[piece_];
            const Index here = std::min(count, piece.count - used_);
            visit(Run{piece[used_], piece.stride, here});
            count -= here;
            used_ += here;
            if (used_ == piece.count) {
                used_ = 0;
                ++piece_;
            }
        }
    }

    /// The range of the next `count` indices; moves behind them.
    Interval next_range(Index count) {
        Interval range = {std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()};
        next(count,
             [&](const Run& run) { range = {std::min(range.first, run.start), std::max(range.last, run.last())}; });
        return range;
    }

  private:
    std::span<const Run> pieces_;
    std::size_t piece_ = 0;
    Index used_ = 0;
};

/// Which key positions each row of a panel sees.
template <int Rows>
struct PanelSight {
    Index first[Rows];
    Index last[Rows];
    Interval some;  // outside it nobody sees anything
    Interval every; // inside it everybody sees everything

    /// `aligned(i)` is the key position on which row i stands; missing rows see what the last one sees.
    template <class Aligned>
    PanelSight(const Mask& mask, Index rows, Aligned aligned) {
        for (Index i = 0; i < Rows; ++i) {
            const Interval seen = mask.seen_from(aligned(std::min(i, rows - 1)));
            first[i] = seen.first;
            last[i] = seen.last;
        }
        some = {*std::min_element(first, first + Rows), *std::max_element(last, last + Rows)};
        every = {*std::max_element(first, first + Rows), *std::min_element(last, last + Rows)};
    }

    /// What the range of keys tells: mixed means that only a look at every key can tell.
    Coverage cover(Interval keys) const {
        if (!some.meets(keys))
            return Coverage::empty;
        return every.contains(keys.first) && every.contains(keys.last) ? Coverage::full : Coverage::mixed;
    }
};

/// Which keys of a tile each row of a panel sees, key by key: 1 where it does, 0 where not.
template <class T>
class TileMask {
  public:
    static constexpr Index rows = panel_rows<T>;

    /// Elements of memory it needs.
    static constexpr Index size = tile_keys * rows;

    explicit TileMask(T* memory) : seen_(memory) {}

    /// Looks at the next `keys` positions. Where the result is mixed, `first_key()` up to `end_key()` are those that
    /// anybody sees.
    Coverage look(const PanelSight<panel_rows<T>>& sight, RunWalker positions, Index keys) {
        first_key_ = keys;
        end_key_ = 0;
        Index k = 0;
        Index seen = 0;
        positions.next(keys, [&](const Run& run) {
            seen += look_at(sight, run, k);
            k += run.count;
        });
        return seen == 0 ? Coverage::empty : seen == keys * rows ? Coverage::full : Coverage::mixed;
    }

    Index first_key() const { return first_key_; }
    Index end_key() const { return end_key_; }
    const T* key(Index k) const { return seen_ + k * rows; }

  private:
    /// How many positions of a run lie before a bound, which may be far away.
    static Index positions_before(Index bound, const Run& run) {
        if (bound <= run.start)
            return 0;
        const Index distance = bound - run.start;
        return std::min(run.count, run.stride == 1 ? distance : (distance + run.stride - 1) / run.stride);
    }

    /// The keys of one run, of which each row sees those from some one up to some other: numbers small enough for T.
    /// Gives how many pairs see each other.
    Index look_at(const PanelSight<panel_rows<T>>& sight, const Run& run, Index first_key) {
        alignas(64) T begin[rows];
        alignas(64) T end[rows];
        Index pairs = 0;
        for (Index i = 0; i < rows; ++i) {
            const Index from = positions_before(sight.first[i], run);
            const Index to = std::max(from, positions_before(sight.last[i] + 1, run));
            begin[i] = T(from);
            end[i] = T(to);
            pairs += to - from;
            if (from < to) {
                first_key_ = std::min(first_key_, first_key + from);
                end_key_ = std::max(end_key_, first_key + to);
            }
        }
        for (Index k = 0; k < run.count; ++k)
            for (Index i = 0; i < rows; i += lanes<T>)
                store<T>(seen_ + (first_key + k) * rows + i, is_in<T>(T(k), load<T>(begin + i), load<T>(end + i)));
        return pairs;
    }

    T* seen_;
    Index first_key_ = 0;
    Index end_key_ = 0;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
