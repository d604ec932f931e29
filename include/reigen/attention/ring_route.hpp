#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The two ways round a ring: to the next rank, or to the one before.
enum class Turn : std::uint8_t { onward, back };

inline constexpr Turn both_turns[] = {Turn::onward, Turn::back};

/// How far the block of every rank has to travel round a ring, given who needs it; the same on every rank, since all
/// compute it from the same. A block goes both ways, and no further than to the last rank that needs it: the largest
/// gap between ranks that do not need it is the stretch it does not cross.
///
///     who needs block 1 of 6: ranks 0, 2, 3      0 <- 1 -> 2 -> 3      two steps onward, one back
///
/// At step s of a turn onward rank r holds the block of (r - s) mod P; on the way back that of (r + s) mod P.
class RingRoute {
  public:
    /// `needs(rank, block)`; a rank always has its own block.
    template <class Needs>
    RingRoute(int ranks, const Needs& needs) : ranks_(ranks), needed_(std::size_t(ranks) * std::size_t(ranks)) {
        for (auto& steps : steps_)
            steps.resize(std::size_t(ranks));
        for (auto& first : first_)
            first.resize(std::size_t(ranks));
        for (int block = 0; block < ranks; ++block) {
            for (int rank = 0; rank < ranks; ++rank)
                needed_[index(rank, block)] = needs(rank, block);
            route(block);
        }
    }

    int ranks() const { return ranks_; }
    bool needed(int rank, int block) const { return needed_[index(rank, block)]; }

    /// How many steps a block travels.
    int steps(Turn turn, int block) const { return steps_[std::size_t(turn)][std::size_t(block)]; }

    /// The step at which a block first meets a rank that needs it; 0 where it does not travel.
    int first_needed(Turn turn, int block) const { return first_[std::size_t(turn)][std::size_t(block)]; }

    /// The most steps any block travels.
    int steps(Turn turn) const {
        return *std::max_element(steps_[std::size_t(turn)].begin(), steps_[std::size_t(turn)].end());
    }

    /// The rank on which a block is after some steps.
    int rank_at(Turn turn, int block, int step) const { return moved(block, turn == Turn::onward ? step : -step); }

    /// The block that reaches a rank at some step, if it travels that far.
    int block_at(Turn turn, int rank, int step) const { return moved(rank, turn == Turn::onward ? -step : step); }

  private:
    std::size_t index(int rank, int block) const {
        return std::size_t(rank) * std::size_t(ranks_) + std::size_t(block);
    }
    int moved(int rank, int by) const { return (rank + by + ranks_) % ranks_; }

    /// Leaves out the largest gap; of equal ones the last, so that a block that all need only goes onward.
    void route(int block) {
        std::vector<int> stops = {0}; // distances onward of the ranks that need the block
        for (int step = 1; step < ranks_; ++step)
            if (needed(moved(block, step), block))
                stops.push_back(step);
        stops.push_back(ranks_);
        std::size_t before_gap = 0;
        for (std::size_t s = 0; s + 1 < stops.size(); ++s)
            if (stops[s + 1] - stops[s] >= stops[before_gap + 1] - stops[before_gap])
                before_gap = s;
        const auto b = std::size_t(block);
        const bool goes_onward = before_gap > 0;
        const bool goes_back = before_gap + 2 < stops.size();
        steps_[0][b] = stops[before_gap];
        first_[0][b] = goes_onward ? stops[1] : 0;
        steps_[1][b] = ranks_ - stops[before_gap + 1];
        first_[1][b] = goes_back ? ranks_ - stops[stops.size() - 2] : 0;
    }

    int ranks_;
    std::vector<char> needed_;
    std::array<std::vector<int>, 2> steps_;
    std::array<std::vector<int>, 2> first_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
