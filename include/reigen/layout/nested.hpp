#pragma once

#include <reigen/comm/mesh.hpp>
#include <reigen/layout/overlap.hpp>
#include <reigen/layout/partition.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

// Partitions over several mesh axes nest in mesh order: the first axis cuts everything, the next cuts what each rank
// is left with. 6 rows over a 2x2 mesh are 2, 1, 2, 1 rows, one after the other.

namespace detail {

inline void require_partition_over(const char* call, const Partition& partition, const Mesh& mesh, Axes axes) {
    require<ShapeError>(partition.ranks() == mesh.size(axes), call, ": the partition is for ", partition.ranks(),
                        " ranks, the mesh has ", mesh.size(axes), " over ", to_string(axes));
}

/// This rank's runs cut evenly over `axes`, one axis after the other.
inline Runs cut(Runs runs, const Mesh& mesh, Axes axes, Axes group, int group_rank, Index grain) {
    for (const MeshAxis& dimension : mesh.axes()) {
        if (!contains(axes, dimension.axis))
            continue;
        const int part = mesh.coordinate(dimension.axis, group, group_rank);
        const Range range = balanced_range(runs.size(), dimension.size, part, grain);
        runs = runs.slice(range.first, range.count);
    }
    return runs;
}

} // namespace detail

/// A partition over `from`, cut further: each rank's runs are divided evenly over the added axes.
inline Partition refine(const Partition& partition, const Mesh& mesh, Axes from, Axes to, Index grain = 1) {
    require(contains(to, from), "refine: ", to_string(to), " does not contain ", to_string(from));
    detail::require_partition_over("refine", partition, mesh, from);
    if (mesh.size(to) == mesh.size(from))
        return partition;
    std::vector<Runs> runs;
    for (int q = 0; q < mesh.size(to); ++q)
        runs.push_back(detail::cut(partition.runs(mesh.coordinate(from, to, q)), mesh, to - from, to, q, grain));
    return Partition::of_checked_runs(partition.size(), std::move(runs), partition.overlaps());
}

/// A partition over `from` with some axes taken away: each rank gets what their ranks held, one after the other;
/// what several of them held comes once. Undoes `refine`.
inline Partition coarsen(const Partition& partition, const Mesh& mesh, Axes from, Axes to) {
    require(contains(from, to), "coarsen: ", to_string(from), " does not contain ", to_string(to));
    detail::require_partition_over("coarsen", partition, mesh, from);
    if (mesh.size(to) == mesh.size(from))
        return partition;
    std::vector<Runs> runs(static_cast<std::size_t>(mesh.size(to)));
    for (int q = 0; q < mesh.size(from); ++q) {
        Runs& all = runs[std::size_t(mesh.coordinate(to, from, q))];
        all.append(partition.overlaps() ? without(partition.runs(q), all) : partition.runs(q));
    }
    if (partition.overlaps())
        return Partition::of_runs(partition.size(), std::move(runs));
    return Partition::of_checked_runs(partition.size(), std::move(runs), false);
}

/// What a partition over `from` becomes over `to`, unless something else is asked for.
inline Partition rearranged(const Partition& partition, const Mesh& mesh, Axes from, Axes to) {
    return refine(coarsen(partition, mesh, from, from & to), mesh, from & to, to);
}

/// n items over some axes of a mesh, in units of `grain`.
inline Partition balanced(const Mesh& mesh, Axes axes, Index n, Index grain = 1) {
    return refine(Partition::whole(n), mesh, Axes::none, axes, grain);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
