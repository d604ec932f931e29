#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <tuple>
#include <vector>

// Which rank of a machine gets which of its cores: arithmetic on what the machine is, which is neither asked nor changed.

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// What the system schedules a thread on, by its number: a core, or one of a core's hardware threads.
struct Core {
    int number = 0;
    int physical = 0;     // alike for the hardware threads of one core
    int memory_node = -1; // that it is beside; -1 where the system does not tell
};

/// Cores, ascending.
using Cores = std::vector<int>;

/// The cores that all ranks of a machine may run on, where their launcher left it to them which rank runs on which: all
/// have the same, and there is one for each. Else none.
inline Cores open_cores(std::span<const Cores> allowed) {
    const bool alike = std::ranges::all_of(allowed, [&](const Cores& cores) { return cores == allowed.front(); });
    return !allowed.empty() && alike && allowed.front().size() >= allowed.size() ? allowed.front() : Cores();
}

/// What is not divided further, and where.
struct CoreUnit {
    int memory_node = 0;
    Cores cores;
};

/// The physical cores with their hardware threads, in the order of their memory nodes; where there are fewer of them
/// than ranks, the hardware threads, those of one core beside each other.
inline std::vector<CoreUnit> units_of(std::vector<Core> cores, std::size_t ranks) {
    std::ranges::sort(cores, {}, [](const Core& c) { return std::tuple(c.memory_node, c.physical, c.number); });
    std::vector<CoreUnit> whole;
    std::vector<CoreUnit> single;
    for (std::size_t c = 0; c < cores.size(); ++c) {
        const bool sibling =
            c > 0 && cores[c].physical == cores[c - 1].physical && cores[c].memory_node == cores[c - 1].memory_node;
        single.push_back({cores[c].memory_node, {cores[c].number}});
        if (!sibling)
            whole.push_back(single.back());
        else
            whole.back().cores.push_back(cores[c].number);
    }
    return whole.size() >= ranks ? whole : single;
}

/// How many of `count` consecutive units each of `ranks` ranks gets: sizes that differ by at most one, larger first.
inline void append_equal(std::vector<std::size_t>& sizes, std::size_t count, std::size_t ranks) {
    for (std::size_t r = 0; r < ranks; ++r)
        sizes.push_back(count / ranks + (r < count % ranks ? 1 : 0));
}

/// How many units each rank gets if none takes from two memory nodes, of which there are at most as many as ranks: the
/// smallest share is as large as it can be.
inline std::vector<std::size_t> sizes_within(std::span<const std::size_t> node_units, std::size_t ranks) {
    std::vector<std::size_t> node_ranks(node_units.size(), 1);
    for (std::size_t r = node_units.size(); r < ranks; ++r) {
        std::size_t roomiest = 0;
        for (std::size_t n = 1; n < node_units.size(); ++n)
            if (node_units[n] * (node_ranks[roomiest] + 1) > node_units[roomiest] * (node_ranks[n] + 1))
                roomiest = n;
        ++node_ranks[roomiest];
    }
    std::vector<std::size_t> sizes;
    for (std::size_t n = 0; n < node_units.size(); ++n)
        append_equal(sizes, node_units[n], node_ranks[n]);
    return sizes;
}

/// Units of each rank: as equal as can be, from one memory node each, unless the smallest share were then less than
/// three quarters of what it could be, for the slowest rank sets the pace.
inline std::vector<std::size_t> share_sizes(std::span<const CoreUnit> units, std::size_t ranks) {
    std::vector<std::size_t> node_units;
    for (std::size_t u = 0; u < units.size(); ++u)
        if (u > 0 && units[u].memory_node == units[u - 1].memory_node)
            ++node_units.back();
        else
            node_units.push_back(1);
    if (node_units.size() <= ranks) {
        auto sizes = sizes_within(node_units, ranks);
        if (4 * *std::ranges::min_element(sizes) >= 3 * (units.size() / ranks))
            return sizes;
    }
    std::vector<std::size_t> sizes;
    append_equal(sizes, units.size(), ranks);
    return sizes;
}

/// The cores of each rank of a machine: neighbours in the order of memory nodes, no physical core's hardware threads
/// apart unless ranks outnumber physical cores, each core some rank's.
///
///     2 memory nodes of 4 cores   2 ranks  0-3 | 4-7      3 ranks  0-1 | 2-3 | 4-7      8 ranks  a core each
///     4 cores of 2 threads, siblings c and c + 4           2 ranks  0-1, 4-5 | 2-3, 6-7
///
/// Throws  ArgumentError where there are fewer cores than ranks
inline std::vector<Cores> shares(const std::vector<Core>& cores, int ranks) {
    require(ranks >= 1 && cores.size() >= std::size_t(ranks), "shares: ", cores.size(), " cores for ", ranks, " ranks");
    const auto units = units_of(cores, std::size_t(ranks));
    std::vector<Cores> result;
    auto next = units.begin();
    for (const std::size_t size : share_sizes(units, std::size_t(ranks))) {
        Cores& share = result.emplace_back();
        for (const auto end = next + std::ptrdiff_t(size); next != end; ++next)
            share.insert(share.end(), next->cores.begin(), next->cores.end());
        std::ranges::sort(share);
    }
    return result;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
