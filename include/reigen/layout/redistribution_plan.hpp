#pragma once

#include <reigen/layout/overlap.hpp>
#include <reigen/layout/shard_spec.hpp>

#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail::redistribution {

/// One step from a placement to the next, inside the joint group over some axes.
///
///     all_reduce       summands -> the sum on every rank
///     reduce_scatter   summands -> each rank its share of the sum
///     all_gather       shares -> the whole on every rank
///     exchange         shares -> other shares (all-to-all)
///     local            each rank has what it needs
///     pad              shares or copies -> summands, with zeros where a rank held nothing; local
enum class Move : std::uint8_t { all_reduce, reduce_scatter, all_gather, exchange, local, pad };

struct Step {
    Move move;
    Axes group;
    ShardSpec from;
    ShardSpec to;

    const Mesh& mesh() const { return from.mesh; }
    const Communicator& communicator() const { return mesh()[group]; }
    int ranks() const { return mesh().size(group); }
    int rank() const { return mesh().rank(group); }
    bool communicates() const { return move != Move::local && move != Move::pad; }
};

/// Sums come first: what is summed has its final type.
struct Plan {
    std::vector<Step> sums;
    std::vector<Step> moves;
};

/// One side, rows or columns, of a matrix on a mesh.
struct Side {
    const Partition& partition;
    Axes axes;
};

inline Side row_side(const ShardSpec& spec) {
    return {spec.row_partition, spec.placement.rows};
}

inline Side col_side(const ShardSpec& spec) {
    return {spec.col_partition, spec.placement.cols};
}

/// Whether every rank of the mesh that holds a part of `all` holds what `some` wants of it.
inline bool holds(const Mesh& mesh, Side all, Side some) {
    if (mesh.size(all.axes) == 1 || (all.axes == some.axes && all.partition == some.partition))
        return true;
    if (contains(some.axes, all.axes) && some.partition == refine(all.partition, mesh, all.axes, some.axes))
        return true;
    const Axes both = all.axes | some.axes;
    for (int q = 0; q < mesh.size(both); ++q) {
        const Runs& wanted = some.partition.runs(mesh.coordinate(some.axes, both, q));
        if (overlap(all.partition.runs(mesh.coordinate(all.axes, both, q)), wanted).size != wanted.size())
            return false;
    }
    return true;
}

/// Whether the ranks of each group over `group` together hold what each of them wants.
inline bool group_holds(const Mesh& mesh, Axes group, Side all, Side some) {
    const Axes outside = all.axes - group;
    return holds(mesh, {coarsen(all.partition, mesh, all.axes, outside), outside}, some);
}

inline Axes changed(Axes before, Axes after) {
    return (before - after) | (after - before);
}

/// The partition over `axes` from which or to which the least has to move: the target's where that is over the same
/// axes, else that of the source, else the target's cut further.
inline Partition between(const Mesh& mesh, Axes axes, Side from, Side to) {
    if (axes == to.axes)
        return to.partition;
    if (axes == from.axes && holds(mesh, to, from))
        return from.partition;
    return refine(to.partition, mesh, to.axes & axes, axes);
}

/// Summands over `axes` become shares: cut over them as the target is, if that cuts what each rank has now.
inline ShardSpec scattered(const ShardSpec& from, const ShardSpec& to, Axes axes) {
    const auto cut = [&](Side now, Side then) {
        const Axes next = now.axes | (axes & then.axes);
        const bool fits = next == then.axes && holds(from.mesh, now, then);
        return fits ? then.partition : refine(now.partition, from.mesh, now.axes, next);
    };
    const Placement p = from.placement;
    const Placement q = to.placement;
    return {from.mesh,
            {p.rows | (axes & q.rows), p.cols | (axes & q.cols), p.partial - axes},
            cut(row_side(from), row_side(to)),
            cut(col_side(from), col_side(to))};
}

/// What is to be padded with zeros to become summands over `axes`.
inline ShardSpec before_padding(const ShardSpec& from, const ShardSpec& to, Axes axes) {
    const Placement p = from.placement;
    const Placement q = to.placement;
    const Placement next = {q.rows | (axes & p.rows), q.cols | (axes & p.cols), p.partial};
    return {from.mesh, next, between(from.mesh, next.rows, row_side(from), row_side(to)),
            between(from.mesh, next.cols, col_side(from), col_side(to))};
}

/// The one step between placements with equal partial axes.
inline Step movement(const ShardSpec& from, const ShardSpec& to) {
    const Mesh& mesh = from.mesh;
    const Placement p = from.placement;
    const Placement q = to.placement;
    if (holds(mesh, row_side(from), row_side(to)) && holds(mesh, col_side(from), col_side(to)))
        return {Move::local, Axes::none, from, to};
    Axes group = changed(p.rows, q.rows) | changed(p.cols, q.cols);
    if (!group_holds(mesh, group, row_side(from), row_side(to)))
        group |= p.rows | q.rows;
    if (!group_holds(mesh, group, col_side(from), col_side(to)))
        group |= p.cols | q.cols;
    const bool gathers =
        contains(p.rows, q.rows) && contains(p.cols, q.cols) && contains(split_axes(p) - split_axes(q), group);
    return {gathers ? Move::all_gather : Move::exchange, group, from, to};
}

/// The same without axes of one rank.
inline ShardSpec essential(ShardSpec spec) {
    const auto several = [&](Axes axes) {
        for (const Axes axis : all_axes)
            if (spec.mesh.size(axis) == 1)
                axes = axes - axis;
        return axes;
    };
    const Placement p = spec.placement;
    spec.placement = {several(p.rows), several(p.cols), several(p.partial)};
    return spec;
}

/// How to get from one placement to another of the same global matrix; the same on every rank.
inline Plan plan_redistribution(const ShardSpec& source, const ShardSpec& target) {
    Plan plan;
    ShardSpec now = essential(source);
    const ShardSpec to = essential(target);
    const Axes summed_axes = now.placement.partial - to.placement.partial;
    const Axes shared_out = summed_axes & split_axes(to.placement);
    const Axes padded = to.placement.partial - now.placement.partial;
    if (shared_out != Axes::none) {
        plan.sums.push_back({Move::reduce_scatter, shared_out, now, scattered(now, to, shared_out)});
        now = plan.sums.back().to;
    }
    if (const Axes axes = summed_axes - shared_out; axes != Axes::none) {
        ShardSpec sum = now;
        sum.placement = summed(now.placement, axes);
        plan.sums.push_back({Move::all_reduce, axes, now, sum});
        now = sum;
    }
    const ShardSpec last = padded == Axes::none ? to : before_padding(now, to, padded);
    if (!(now == last))
        plan.moves.push_back(movement(now, last));
    if (padded != Axes::none)
        plan.moves.push_back({Move::pad, padded, last, to});
    return plan;
}

} // namespace detail::redistribution
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
