#include <support/memory_report.hpp>

#include <support/text_table.hpp>
#include <support/units.hpp>

#include <algorithm>
#include <ostream>
#include <string>

namespace examples {
namespace {

using reigen::Axes;
using reigen::Index;
using reigen::MemoryEntry;
using reigen::MemoryUse;

constexpr int uses = int(MemoryUse::workspace) + 1;
constexpr int divisions = 32; // sets of five axes
constexpr int slots = uses * divisions + 1;

int slot(MemoryEntry entry) {
    return int(entry.use) * divisions + int(entry.split);
}

MemoryEntry entry_of(int slot) {
    return {MemoryUse(slot / divisions), Axes(slot % divisions)};
}

std::vector<Index> own_peaks() {
    std::vector<Index> peaks(slots, 0);
    for (const auto& [entry, bytes] : reigen::memory_account()->entries())
        peaks[std::size_t(slot(entry))] = bytes.peak;
    peaks.back() = reigen::memory_account()->total().peak;
    return peaks;
}

/// "weights, split over tp", "weights, not split"; what belongs to no tensor has its use only.
std::string line_name(MemoryEntry entry) {
    const std::string use = to_string(entry.use);
    if (entry.split != Axes::none)
        return use + ", split over " + to_string(entry.split);
    return entry.use <= MemoryUse::activations ? use + ", not split" : use;
}

std::vector<std::string> cells(std::string name, const std::vector<Index>& peaks) {
    std::vector<std::string> row = {std::move(name)};
    if (peaks.size() <= 4)
        for (const Index bytes : peaks)
            row.push_back(bytes_text(bytes));
    else {
        const auto [least, most] = std::minmax_element(peaks.begin(), peaks.end());
        row.insert(row.end(), {bytes_text(*least), bytes_text(*most)});
    }
    return row;
}

std::vector<std::string> heading(std::size_t ranks) {
    std::vector<std::string> row = {"memory at its peak"};
    if (ranks > 4)
        row.insert(row.end(), {"least of a rank", "most of a rank"});
    else
        for (std::size_t rank = 0; rank < ranks; ++rank)
            row.push_back("rank " + std::to_string(rank));
    return row;
}

} // namespace

MemoryReport memory_report(const reigen::Communicator& world) {
    const std::vector<Index> mine = own_peaks();
    std::vector<Index> all(mine.size() * std::size_t(world.size()));
    world.all_gather(mine, all);
    MemoryReport report;
    for (int s = 0; s < slots; ++s) {
        std::vector<Index> peaks;
        for (int rank = 0; rank < world.size(); ++rank)
            peaks.push_back(all[std::size_t(rank) * slots + std::size_t(s)]);
        if (s == slots - 1)
            report.total_peaks = peaks;
        else if (*std::max_element(peaks.begin(), peaks.end()) > 0)
            report.lines.push_back({entry_of(s), peaks});
    }
    return report;
}

std::ostream& operator<<(std::ostream& out, const MemoryReport& report) {
    TextTable table(heading(report.total_peaks.size()));
    for (const auto& [entry, peaks] : report.lines)
        table.add(cells(line_name(entry), peaks));
    table.add(cells("all together", report.total_peaks));
    return out << table;
}

} // namespace examples
