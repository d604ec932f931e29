#pragma once

#include <reigen/comm/shared_memory/peer_memory.hpp>

#include <limits>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// From how many bytes on ranks read each other's own memory instead of slots, as measured with two ranks on a Xeon
/// (Emerald Rapids).
struct DirectLimits {
    /// For a copy by the system: slots that stay in the second cache are faster at any length.
    static constexpr Index never = std::numeric_limits<Index>::max();

    Index in_place; // where all can read it where it lies: worth two more steps
    Index copied;   // where the system has to copy it

    /// Whether it is worth telling where memory lies.
    bool may_read(const PeerMemory& memory, Index bytes) const { return bytes >= in_place && memory.any(); }

    /// Whether they do, now that all know whether the memory of all can be read in place.
    bool read(const PeerMemory& memory, bool all_in_place, Index bytes) const {
        return bytes >= in_place && (all_in_place || (memory.copies() && bytes >= copied));
    }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
