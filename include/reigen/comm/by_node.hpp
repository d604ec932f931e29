#pragma once

#include <reigen/comm/communicator.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// The ranks in the order of their machines, each given by the first rank there, and by number within one.
inline std::vector<int> ranks_by_node(std::span<const int> nodes) {
    std::vector<int> ranks(nodes.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::ranges::stable_sort(ranks, {}, [&](int rank) { return nodes[std::size_t(rank)]; });
    return ranks;
}

/// The machine of each rank. Collective.
inline std::vector<int> nodes_of(const Communicator& ranks) {
    std::vector<int> nodes(std::size_t(ranks.size()));
    ranks.all_gather(std::array{ranks.backend()->node()}, nodes);
    return nodes;
}

} // namespace detail

/// The same ranks numbered one machine after the other, whatever the launcher did; where they are, the same communicator.
/// The fast axes of a `Mesh` over it lie inside machines, and a ring along a slow one visits all ranks of a machine
/// before it leaves that.
///
///     launched over two machines in turn, 0 2 4 | 1 3 5:   by_node 0 1 2 | 3 4 5,  which are 0 2 4 | 1 3 5 of `ranks`
///
/// Ranks have other numbers in it than in `ranks`: whoever divides data by number goes by one of the two. `mpi_main`
/// numbers so by itself; a program that owns MPI asks for it, for there its own numbers would differ.
///
/// Cost        one all_gather of a number; where the order differs, a `split`
/// Collective  over `ranks`
inline Communicator by_node(const Communicator& ranks) {
    const std::vector<int> order = detail::ranks_by_node(detail::nodes_of(ranks));
    if (std::ranges::is_sorted(order))
        return ranks;
    return ranks.split(0, int(std::ranges::find(order, ranks.rank()) - order.begin()), ranks.name());
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
