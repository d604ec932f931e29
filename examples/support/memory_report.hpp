#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/core/memory.hpp>

#include <iosfwd>
#include <vector>

namespace examples {

/// What one line of the report says: the most that each rank's buffers of one use and one division held at once.
struct MemoryLine {
    reigen::MemoryEntry entry;
    std::vector<reigen::Index> peaks; // bytes, by rank
};

/// Peaks of every rank, counted by the allocator.
struct MemoryReport {
    std::vector<MemoryLine> lines;          // by use, then by the axes they are divided over
    std::vector<reigen::Index> total_peaks; // bytes all uses held at once, by rank
};

/// What the buffers of every rank held at most, on every rank.
///
/// Collective  over the world
MemoryReport memory_report(const reigen::Communicator& world);

/// A table with a column for every rank; with more than four ranks, for the least and the most.
std::ostream& operator<<(std::ostream& out, const MemoryReport& report);

} // namespace examples
