#pragma once

#include <reigen/layout/redistribution_steps.hpp>
#include <reigen/layout/sharded.hpp>

#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// What ranks `mine` and `other` both hold, as local places of `mine` and of `other`; both ranks see the same order.
inline Overlap shared_items(const Partition& partition, int mine, int other) {
    if (mine <= other)
        return overlap(partition.runs(mine), partition.runs(other));
    return overlap(partition.runs(other), partition.runs(mine)).swapped();
}

/// Columns held by several ranks become the sum of their copies, in rank order.
template <class T>
void sum_column_copies(const Communicator& ranks, const Partition& partition, Strided<T> local) {
    const MemoryScope scope(MemoryUse::messages);
    const Overlap all_rows = overlap(Runs::range(0, local.rows), Runs::range(0, local.rows));
    std::vector<Overlap> shared;
    std::vector<Index> parts;
    for (int q = 0; q < ranks.size(); ++q) {
        shared.push_back(shared_items(partition, ranks.rank(), q));
        parts.push_back(q == ranks.rank() ? 0 : shared.back().size * local.rows);
    }
    const auto block = [&](Buffer<T>& message, int q) {
        const Index before = redistribution::total({parts.begin(), parts.begin() + q});
        return row_major(message.data() + before, local.rows, shared[std::size_t(q)].size);
    };
    Buffer<T> out(redistribution::total(parts));
    Buffer<T> in(out.size());
    for (int q = 0; q < ranks.size(); ++q)
        if (q != ranks.rank())
            copy_block(all_rows, shared[std::size_t(q)].packed(), Strided<const T>(local), block(out, q));
    ranks.all_to_all(out, parts, in, parts);

    Buffer<T> sum = Buffer<T>::zeros(local.size());
    const Strided<T> target = row_major(sum.data(), local.rows, local.cols);
    for (int q = 0; q < ranks.size(); ++q)
        if (q == ranks.rank())
            for_block(Strided<const T>(local), target, AddElement());
        else
            copy_block(all_rows, shared[std::size_t(q)].swapped().unpacked(), Strided<const T>(block(in, q)), target,
                       AddElement());
    for_block(Strided<const T>(target), local, AssignElement());
}

} // namespace detail

/// Rows and columns that several ranks hold become, on each of them, the sum of their copies.
///
/// For gradients: where tp exceeds the K/V heads, each rank computes the gradient of its own copy of a shared head, and
/// the gradient of the head is their sum. Values need nothing of the kind: their copies are equal. In place; a partial
/// stays partial.
///
/// Cost        where nothing overlaps none; else one all-to-all of the shared columns, and twice the local part as
///             memory
/// Collective  over the group of the axes that split the overlapping side
/// Order       in rank order, bit-identical on every holder
template <class T>
void sum_overlaps(const ShardSpec& spec, Strided<T> local) {
    require<ShapeError>(local.rows == spec.local_rows() && local.cols == spec.local_cols(), "sum_overlaps: local is ",
                        shape(local.rows, local.cols), ", the partitions give this rank ",
                        shape(spec.local_rows(), spec.local_cols()));
    if (spec.col_partition.overlaps())
        detail::sum_column_copies(spec.mesh[spec.placement.cols], spec.col_partition, local);
    if (spec.row_partition.overlaps())
        detail::sum_column_copies(spec.mesh[spec.placement.rows], spec.row_partition, local.transpose());
}

template <ShardedLike X>
void sum_overlaps(X&& x) {
    sum_overlaps(x.spec(), x.strided());
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
