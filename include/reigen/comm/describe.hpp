#pragma once

#include <reigen/comm/by_node.hpp>
#include <reigen/comm/communicator.hpp>
#include <reigen/comm/mesh.hpp>
#include <reigen/comm/place.hpp>
#include <reigen/comm/texts.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <span>
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

/// Whether ranks, as processes, have other numbers than their launcher gave them.
inline bool numbered_otherwise(const std::vector<Place>& places) {
    std::set<int> numbers;
    bool differs = false;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        numbers.insert(places[rank].launched);
        differs = differs || places[rank].launched != int(rank);
    }
    return differs && numbers.size() == places.size() && *numbers.begin() >= 0;
}

/// In how many steps a ring through these machines, one for each rank, goes from one machine to another.
inline int crossings(std::span<const int> nodes) {
    int steps = 0;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
        steps += nodes[rank] != nodes[(rank + 1) % nodes.size()] ? 1 : 0;
    return steps;
}

/// "  tp=2  inside a machine": of the group over an axis that leaves its machine most often.
inline std::string machines_of_axis(const Mesh& mesh, const MeshAxis& axis, std::span<const int> nodes) {
    int most_steps = 0;
    std::size_t most_machines = 1;
    for (const auto& group : mesh.groups(axis.axis)) {
        std::vector<int> of_group;
        for (const int rank : group)
            of_group.push_back(nodes[std::size_t(rank)]);
        most_steps = std::max(most_steps, crossings(of_group));
        most_machines = std::max(most_machines, std::set<int>(of_group.begin(), of_group.end()).size());
    }
    const std::string name = concat("  ", to_string(axis.axis), '=', axis.size);
    return most_machines == 1 ? name + "  inside a machine\n"
                              : concat(name, "  over ", most_machines, " machines; a ring crosses between them ",
                                       most_steps, " times\n");
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
/// process's long Buffers lie beside other cores than its own: of ranks as processes, under MPI. Where ranks have other
/// numbers than those of their launcher it gives these too.
///
/// Cost        one all_gather of texts
/// Collective  over `ranks`
inline std::string describe(const Communicator& ranks) {
    std::vector<detail::Place> places;
    for (const std::string& text : all_gather_texts(ranks, detail::to_text(detail::own_place())))
        places.push_back(detail::place_of_text(text));
    std::string text =
        concat(ranks.size(), ranks.size() == 1 ? " rank: " : " ranks: ", ranks.backend()->description(), '\n');
    const bool otherwise = detail::numbered_otherwise(places);
    for (std::size_t rank = 0; rank < places.size(); ++rank)
        text += concat("  rank ", rank, "  ", to_string(places[rank]),
                       otherwise ? concat("  the launcher's rank ", places[rank].launched) : "", '\n');
    return text + detail::shared_cores(places) + detail::distant_memory(places);
}

/// Which axes of a mesh stay inside machines, and how often a ring along the others goes from one to another: no oftener
/// than it has to where ranks are numbered one machine after the other (`by_node`). The same text on every rank.
///
///     mesh cp=2 x tp=2 of 4 ranks on 2 machines
///       cp=2  over 2 machines; a ring crosses between them 2 times
///       tp=2  inside a machine
///
/// Cost        one all_gather of a number
/// Collective  over the mesh
inline std::string describe(const Mesh& mesh) {
    const std::vector<int> nodes = detail::nodes_of(mesh.world());
    const auto machines = std::set<int>(nodes.begin(), nodes.end()).size();
    std::string text = concat("mesh ", to_string(std::span(mesh.axes())), " of ", nodes.size(), " ranks on ", machines,
                              machines == 1 ? " machine\n" : " machines\n");
    for (const MeshAxis& axis : mesh.axes())
        if (machines > 1 && axis.size > 1)
            text += detail::machines_of_axis(mesh, axis, nodes);
    return std::ranges::is_sorted(detail::ranks_by_node(nodes))
               ? text
               : text + "warning: ranks are not numbered one machine after the other, by_node(world) does that\n";
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
