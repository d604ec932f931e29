#pragma once

#include <reigen/comm/collectives/part_sizes.hpp>
#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <cstddef>
#include <span>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

// How many elements of a whole belong to each rank, as the caller of a collective gives it. All throw ShapeError; `name`
// is that of the call.

inline void check_parts(const char* name, std::span<const Index> parts, int size, Index all) {
    require<ShapeError>(Index(parts.size()) == size, name, ": ", parts.size(), " parts for ", size, " ranks");
    for (const Index part : parts)
        require<ShapeError>(part >= 0, name, ": a part is negative");
    for (const Index part : parts)
        require<ShapeError>(part <= all, name, ": a part of ", part, " elements of a whole of ", all);
    require<ShapeError>(sum_of(parts) == all, name, ": the parts sum to ", sum_of(parts), ", the whole has ", all,
                        " elements");
}

/// The parts that were given, or equal ones where there are none, against what this rank has of the whole.
inline void check_own_part(const char* name, std::span<const Index> parts, int rank, int size, Index mine, Index all) {
    if (parts.empty()) {
        require<ShapeError>(all == mine * size, name, ": ", mine, " elements on each of ", size,
                            " ranks are not the whole of ", all);
        return;
    }
    check_parts(name, parts, size, all);
    const Index part = parts[std::size_t(rank)];
    require<ShapeError>(part == mine, name, ": part ", rank, " has ", part, " elements, the range of this rank ", mine);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
