#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/comm/place.hpp>
#include <reigen/comm/texts.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// A warning for each host whose ranks have fewer cores than they are, and for those bound to one and the same core.
inline std::string shared_cores(const std::vector<Place>& places) {
    std::map<std::string, std::vector<int>> ranks_of;
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        ranks_of[places[rank].host].push_back(int(rank));
    std::string warnings;
    for (const auto& [host, ranks] : ranks_of) {
        std::set<int> cores;
        std::map<int, int> alone_on; // core, rank
        for (const int rank : ranks) {
            const std::vector<int>& own = places[std::size_t(rank)].cores;
            cores.insert(own.begin(), own.end());
            if (own.size() == 1)
                if (const auto [other, first] = alone_on.emplace(own.front(), rank); !first)
                    warnings += concat("warning: ranks ", other->second, " and ", rank, " are both bound to core ",
                                       own.front(), " of ", host, '\n');
        }
        if (ranks.size() > cores.size())
            warnings += concat("warning: ", ranks.size(), " ranks share ", cores.size(), " cores of ", host, '\n');
    }
    return warnings;
}

/// A warning for each rank most of whose pages are beside other cores than its own.
inline std::string distant_memory(const std::vector<Place>& places) {
    std::string warnings;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        const Place& place = places[rank];
        std::set<int> distant;
        std::size_t pages = 0;
        for (const int node : place.pages)
            if (!place.nodes.empty() && std::ranges::find(place.nodes, node) == place.nodes.end())
                distant.insert(node), ++pages;
        if (2 * pages > place.pages.size())
            warnings += concat("warning: rank ", rank, " has ", 100 * pages / place.pages.size(),
                               "% of its long Buffers on memory node", distant.size() == 1 ? " " : "s ",
                               to_ranges({distant.begin(), distant.end()}), ", its cores are beside ",
                               to_ranges(place.nodes), '\n');
    }
    return warnings;
}

} // namespace detail

/// How these ranks reach each other, where each of them runs, and what is wrong with that: the same text on every rank.
///
///     2 ranks: processes under Open MPI v4.1.4; collectives through shared memory, long Buffers read in place
///       rank 0  node7  core 0  memory node 0  its share of 0-1
///       rank 1  node7  core 1  memory node 0  its share of 0-1
///
/// "Its share" where `mpi_main` or `mpi_communicator` divided the cores that the launcher had left to all ranks of the
/// machine (`Binding`), else "as launched". Warns of ranks that share cores, and where the system tells that most of a
/// process's long Buffers lie beside other cores than its own: of ranks as processes, under MPI.
///
/// Cost        one all_gather of texts
/// Collective  over `ranks`
inline std::string describe(const Communicator& ranks) {
    std::vector<detail::Place> places;
    for (const std::string& text : all_gather_texts(ranks, detail::to_text(detail::own_place())))
        places.push_back(detail::place_of_text(text));
    std::string text =
        concat(ranks.size(), ranks.size() == 1 ? " rank: " : " ranks: ", ranks.backend()->description(), '\n');
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        text += concat("  rank ", rank, "  ", to_string(places[rank]), '\n');
    return text + detail::shared_cores(places) + detail::distant_memory(places);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
