#pragma once

#include <reigen/core/instruction_set.hpp>

#include <cstdint>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Memory of a rank, as it tells others of it.
struct SharedAddress {
    std::uint64_t address = 0;      // in its own process
    std::uint64_t behind_start = 0; // of what others can read where it lies: 1 + bytes; 0 where it lies elsewhere

    bool operator==(const SharedAddress&) const = default;

    /// Which all can read where it lies.
    static SharedAddress of_nothing() { return {0, 1}; }

    /// Whether others can read it where it lies.
    bool in_place() const { return behind_start != 0; }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
