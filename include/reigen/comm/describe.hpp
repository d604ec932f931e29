#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/comm/place.hpp>
#include <reigen/comm/texts.hpp>

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

} // namespace detail

/// How these ranks reach each other, where each of them runs, and what is wrong with that: the same text on every rank.
///
///     2 ranks: processes under Open MPI v4.1.4; collectives through shared memory, long Buffers read in place
///       rank 0  node7  core 0    memory node 0
///       rank 1  node7  core 1    memory node 0
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
    return text + detail::shared_cores(places);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
