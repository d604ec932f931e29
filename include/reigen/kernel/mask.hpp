#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// All positions from `first` to `last`, both included; nothing where last < first.
struct Interval {
    Index first = 0;
    Index last = -1;

    bool empty() const { return last < first; }
    bool contains(Index position) const { return first <= position && position <= last; }
    bool meets(Interval other) const { return first <= other.last && other.first <= last; }
    bool operator==(const Interval&) const = default;
};

/// Who may see whom: a band around each query's own position.
///
/// The query at position q sees the key at k iff q + offset - left <= k <= q + offset + right, where
/// offset = Nk - Nq of the global lengths: the last query stands on the last key ("bottom-right alignment").
/// Unbounded is an empty optional, never a number. Positions are global.
struct Mask {
    std::optional<Index> left = {};
    std::optional<Index> right = {};

    static constexpr Mask everything() { return {}; }
    static constexpr Mask causal() { return {std::nullopt, 0}; }
    /// `left_keys` keys back and `right_keys` ahead, beside the query's own: "w tokens counting itself" is window(w-1).
    static constexpr Mask window(Index left_keys, Index right_keys = 0) { return {left_keys, right_keys}; }

    /// What a query that stands on key position `aligned` (q + offset) sees.
    Interval seen_from(Index aligned) const {
        constexpr Index far = Index(1) << 60; // beyond every position, and far from overflowing
        return {left ? aligned - std::min(*left, far) : -far, right ? aligned + std::min(*right, far) : far};
    }

    bool sees_all() const { return !left && !right; }
    bool operator==(const Mask&) const = default;
};

/// "everything", "causal", "window of 3 back, 0 ahead".
inline std::string to_string(const Mask& mask) {
    const auto side = [](std::optional<Index> keys) { return keys ? concat(*keys) : std::string("all"); };
    if (mask.sees_all())
        return "everything";
    if (mask == Mask::causal())
        return "causal";
    return concat("window of ", side(mask.left), " back, ", side(mask.right), " ahead");
}

namespace detail {

inline void check_mask(const Mask& mask, const char* caller) {
    require<ArgumentError>(mask.left.value_or(0) >= 0 && mask.right.value_or(0) >= 0, caller, ": a mask of ",
                           to_string(mask), ": want bounds >= 0; no bound is std::nullopt");
}

} // namespace detail

/// Whether the mask lets any of these queries see any of these keys, judged by the ranges of their runs: true for a few
/// interleaved runs none of which sees the other, never false where one does.
inline bool may_see(const Mask& mask, const Runs& queries, Index offset, const Runs& keys) {
    for (const Run& query : queries.pieces()) {
        const Interval seen = {mask.seen_from(query.start + offset).first, mask.seen_from(query.last() + offset).last};
        for (const Run& key : keys.pieces())
            if (seen.meets({key.start, key.last()}))
                return true;
    }
    return false;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
