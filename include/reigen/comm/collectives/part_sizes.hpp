#pragma once

#include <reigen/core/types.hpp>

#include <numeric>
#include <span>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

// How many elements of a whole belong to each rank.

inline Index sum_of(std::span<const Index> parts) {
    return std::accumulate(parts.begin(), parts.end(), Index(0));
}

/// Where each rank's part starts.
inline std::vector<Index> starts_of(std::span<const Index> parts) {
    std::vector<Index> starts(parts.size(), 0);
    std::exclusive_scan(parts.begin(), parts.end(), starts.begin(), Index(0));
    return starts;
}

/// Sizes differ by at most one, larger first.
inline std::vector<Index> balanced_parts(Index total, int ranks) {
    std::vector<Index> parts(std::size_t(ranks), total / ranks);
    for (Index r = 0; r < total % ranks; ++r)
        ++parts[std::size_t(r)];
    return parts;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
