#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/layout/overlap.hpp>
#include <reigen/layout/parameter.hpp>

#include <numeric>
#include <span>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// For every rank of the group, the local columns of this rank that it holds as well; none for this rank itself.
inline std::vector<Overlap> shared_columns(const Partition& columns, int rank) {
    std::vector<Overlap> shared;
    for (int other = 0; other < columns.ranks(); ++other)
        shared.push_back(other == rank ? Overlap{} : overlap(columns.runs(rank), columns.runs(other)));
    return shared;
}

/// Gives to and takes from each rank the columns both hold; `theirs` ends up with rank after rank, column after column.
template <class T>
Buffer<T> exchange_shared_columns(const Strided<T>& mine, std::span<const Overlap> shared, const Communicator& group) {
    std::vector<Index> parts;
    for (const Overlap& columns : shared)
        parts.push_back(columns.size * mine.rows);
    const Index total = std::accumulate(parts.begin(), parts.end(), Index(0));
    Buffer<T> out(total), theirs(total);
    T* to = out.data();
    for (const Overlap& columns : shared)
        for (const Run& piece : columns.first)
            for (Index j = 0; j < piece.count; ++j, to += mine.rows)
                for (Index i = 0; i < mine.rows; ++i)
                    to[i] = mine(i, piece[j]);
    group.all_to_all(out, parts, theirs, parts);
    return theirs;
}

/// sums += what another rank sent of the columns it shares, one after the other at `from`; where the next rank's begin.
template <class T>
const T* add_columns(const Overlap& columns, const T* from, const Strided<T>& sums) {
    for (const Run& piece : columns.first)
        for (Index j = 0; j < piece.count; ++j, from += sums.rows)
            for (Index i = 0; i < sums.rows; ++i)
                sums(i, piece[j]) += from[i];
    return from;
}

} // namespace detail

/// Where several ranks hold the same columns (K/V heads that query heads on several ranks read), replaces each
/// holder's gradient of them by the sum over the holders.
///
/// Cost        every holder of a column sends it to every other holder
/// Collective  over the axes that split the columns; nothing where no column is held twice
/// Order       in rank order, so every holder has the same bits
template <class S>
void sum_overlapping_columns(const ParameterView<S>& parameter) {
    using T = Accumulator<S>;
    if (!parameter.col_partition.overlaps())
        return;
    const MemoryScope scope(MemoryUse::messages);
    const Communicator& group = parameter.mesh[parameter.placement.cols];
    const auto shared = detail::shared_columns(parameter.col_partition, group.rank());
    const Strided<T>& gradient = parameter.gradient;
    const Buffer<T> theirs = detail::exchange_shared_columns(gradient, shared, group);
    auto memory = Buffer<T>::zeros(gradient.size());
    const Strided<T> sums{memory.data(), gradient.rows, gradient.cols, gradient.cols, 1};
    const T* from = theirs.data();
    for (int rank = 0; rank < group.size(); ++rank) {
        if (rank == group.rank())
            sums.map() += gradient.map();
        from = detail::add_columns(shared[std::size_t(rank)], from, sums);
    }
    gradient.map() = sums.map();
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
