#pragma once

#include <reigen/layout/partition.hpp>

#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How a sequence is divided over the ranks of a ring.
///
///     8 positions over 2 ranks     contiguous  0 1 2 3 | 4 5 6 7
///                                  zigzag      0 1 6 7 | 2 3 4 5
///                                  striped     0 2 4 6 | 1 3 5 7
enum class SequenceLayout : std::uint8_t { contiguous, zigzag, striped };

inline std::string to_string(SequenceLayout layout) {
    constexpr const char* names[] = {"contiguous", "zigzag", "striped"};
    return layout <= SequenceLayout::striped ? names[int(layout)] : concat("layout ", int(layout));
}

namespace detail {

/// Chunks r and 2P-1-r of 2P balanced ones: an early and a late one, so that causal work is even.
inline Runs zigzag_runs(Index length, int ranks, int rank) {
    const Range early = balanced_range(length, 2 * ranks, rank);
    const Range late = balanced_range(length, 2 * ranks, 2 * ranks - 1 - rank);
    return {{early.first, 1, early.count}, {late.first, 1, late.count}};
}

/// Stripes r, r + P, r + 2P, ... of `stripe` positions each; the last may be short.
inline Runs striped_runs(Index length, int ranks, int rank, Index stripe) {
    if (stripe == 1)
        return {{rank, ranks, rank < length ? (length - 1 - rank) / ranks + 1 : 0}};
    if (stripe >= length) // one stripe, and numbers that may not be multiplied
        return Runs::range(0, rank == 0 ? length : 0);
    Runs runs;
    for (Index first = rank * stripe; first < length; first += ranks * stripe)
        runs.append({first, 1, std::min(stripe, length - first)});
    return runs;
}

} // namespace detail

/// The positions of a sequence that a rank holds, in its order. Lengths need not divide; ranks may hold none. Only the
/// striped layout has stripes of more than one.
inline Runs sequence_runs(SequenceLayout layout, Index length, int ranks, int rank, Index stripe = 1) {
    require(length >= 0 && ranks >= 1 && rank >= 0 && rank < ranks && stripe >= 1, "sequence of ", length,
            " positions on rank ", rank, " of ", ranks, " in stripes of ", stripe);
    require(layout <= SequenceLayout::striped, "sequence: there is no ", to_string(layout));
    require(stripe == 1 || layout == SequenceLayout::striped, "sequence: stripes of ", stripe, " in the ",
            to_string(layout), " layout: only the striped one has stripes");
    switch (layout) {
    case SequenceLayout::zigzag:
        return detail::zigzag_runs(length, ranks, rank);
    case SequenceLayout::striped:
        return detail::striped_runs(length, ranks, rank, stripe);
    case SequenceLayout::contiguous:
        break;
    }
    const Range range = balanced_range(length, ranks, rank);
    return Runs::range(range.first, range.count);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
