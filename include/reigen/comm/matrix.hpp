#pragma once

#include <reigen/comm/communicator.hpp>
#include <reigen/core/buffer.hpp>
#include <reigen/core/strided.hpp>

#include <span>
#include <type_traits>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

// The communicator's calls on matrices: `Strided` views, and Eigen matrices, maps, blocks and transposes of either
// storage order. What does not lie in one piece is packed into one, sent, and unpacked; nothing outside the view is
// read or written. Costs are those of the calls on ranges, plus the packing.

namespace detail {

template <class Matrix>
concept EigenMatrix = requires(const std::remove_cvref_t<Matrix>& matrix) {
    []<class Derived>(const Eigen::MatrixBase<Derived>&) {}(matrix);
};

template <class T>
std::span<T> elements(Strided<T> matrix) {
    return {matrix.data, std::size_t(matrix.size())};
}

template <class T>
Strided<T> as_matrix(Buffer<T>& buffer, Index rows, Index cols) {
    return {buffer.data(), rows, cols, cols, 1};
}

/// Hands the elements, row by row, to `call` as a range that it may change; they are written back where it `writes`.
template <class T, class Call>
void in_one_piece(Strided<T> matrix, bool reads, bool writes, Call call) {
    require_elements(matrix, "a message");
    if (matrix.is_contiguous())
        return call(elements(matrix));
    const MemoryScope scope(MemoryUse::messages);
    Buffer<std::remove_const_t<T>> packed(matrix.size());
    const auto image = as_matrix(packed, matrix.rows, matrix.cols);
    if (reads)
        image.map() = matrix.map();
    call(elements<T>(Strided<T>(image)));
    if constexpr (!std::is_const_v<T>)
        if (writes)
            matrix.map() = image.map();
}

/// The matrix or its transpose, whichever has its rows closer together.
template <class T>
Strided<T> in_storage_order(Strided<T> matrix) {
    return matrix.row_stride < matrix.col_stride ? matrix.transpose() : matrix;
}

/// Elements of each rank, from rows of each rank.
inline std::vector<Index> times(std::span<const Index> rows, Index cols) {
    std::vector<Index> sizes(rows.begin(), rows.end());
    for (Index& size : sizes)
        size *= cols;
    return sizes;
}

} // namespace detail

/// Reduces each element over the ranks, in place; the matrices have one shape and one storage order. Collective.
template <Element T>
void all_reduce(const Communicator& ranks, Strided<T> matrix, Reduction reduction = Reduction::sum) {
    detail::in_one_piece(detail::in_storage_order(matrix), true, true,
                         [&](std::span<T> all) { ranks.all_reduce(all, reduction); });
}

/// Gives every rank the matrix of `root`; the matrices have one shape and one storage order. Collective.
template <Element T>
void broadcast(const Communicator& ranks, Strided<T> matrix, int root) {
    const bool mine = ranks.rank() == root;
    detail::in_one_piece(detail::in_storage_order(matrix), mine, !mine,
                         [&](std::span<T> all) { ranks.broadcast(all, root); });
}

/// Sends a matrix row by row, whatever its storage order.
template <Element T>
void send(const Communicator& ranks, Strided<T> matrix, int to, int tag = 0) {
    detail::in_one_piece(matrix, true, false, [&](std::span<T> all) { ranks.send(all, to, tag); });
}

/// Receives a matrix of this shape row by row, whatever its storage order.
template <Element T>
void receive(const Communicator& ranks, Strided<T> matrix, int from, int tag = 0) {
    detail::in_one_piece(matrix, false, true, [&](std::span<T> all) { ranks.receive(all, from, tag); });
}

/// Stacks the ranks' matrices on top of each other, on every rank. Collective.
///
/// Shapes  mine [m_r, n], all [sum of m_r, n]; `rows`: m_r of each rank, none = equal
template <Element T>
void all_gather_rows(const Communicator& ranks, Strided<const T> mine, Strided<T> all,
                     std::span<const Index> rows = {}) {
    require<ShapeError>(mine.cols == all.cols, "all_gather_rows: mine is ", shape(mine.rows, mine.cols), ", all is ",
                        shape(all.rows, all.cols));
    detail::in_one_piece(mine, true, false, [&](std::span<const T> in) {
        detail::in_one_piece(all, false, true,
                             [&](std::span<T> out) { ranks.all_gather(in, out, detail::times(rows, all.cols)); });
    });
}

/// Puts the ranks' matrices side by side, on every rank. Collective.
///
/// Shapes  mine [m, n_r], all [m, sum of n_r]; `cols`: n_r of each rank, none = equal
template <Element T>
void all_gather_cols(const Communicator& ranks, Strided<const T> mine, Strided<T> all,
                     std::span<const Index> cols = {}) {
    require<ShapeError>(mine.rows == all.rows, "all_gather_cols: mine is ", shape(mine.rows, mine.cols), ", all is ",
                        shape(all.rows, all.cols));
    all_gather_rows(ranks, mine.transpose(), all.transpose(), cols);
}

/// Sums the ranks' matrices, of which rank r keeps its rows. Collective.
///
/// Shapes  all [sum of m_r, n], mine [m_r, n]; `rows`: m_r of each rank, none = equal
template <Element T>
void reduce_scatter_rows(const Communicator& ranks, Strided<const T> all, Strided<T> mine,
                         Reduction reduction = Reduction::sum, std::span<const Index> rows = {}) {
    require<ShapeError>(mine.cols == all.cols, "reduce_scatter_rows: all is ", shape(all.rows, all.cols), ", mine is ",
                        shape(mine.rows, mine.cols));
    detail::in_one_piece(all, true, false, [&](std::span<const T> in) {
        detail::in_one_piece(mine, false, true, [&](std::span<T> out) {
            ranks.reduce_scatter(in, out, reduction, detail::times(rows, all.cols));
        });
    });
}

/// Sums the ranks' matrices, of which rank r keeps its columns. Collective.
///
/// Shapes  all [m, sum of n_r], mine [m, n_r]; `cols`: n_r of each rank, none = equal
template <Element T>
void reduce_scatter_cols(const Communicator& ranks, Strided<const T> all, Strided<T> mine,
                         Reduction reduction = Reduction::sum, std::span<const Index> cols = {}) {
    require<ShapeError>(mine.rows == all.rows, "reduce_scatter_cols: all is ", shape(all.rows, all.cols), ", mine is ",
                        shape(mine.rows, mine.cols));
    reduce_scatter_rows(ranks, all.transpose(), mine.transpose(), reduction, cols);
}

template <detail::EigenMatrix Matrix>
void all_reduce(const Communicator& ranks, Matrix&& matrix, Reduction reduction = Reduction::sum) {
    all_reduce(ranks, strided(matrix), reduction);
}

template <detail::EigenMatrix Matrix>
void broadcast(const Communicator& ranks, Matrix&& matrix, int root) {
    broadcast(ranks, strided(matrix), root);
}

template <detail::EigenMatrix Matrix>
void send(const Communicator& ranks, const Matrix& matrix, int to, int tag = 0) {
    send(ranks, strided(matrix), to, tag);
}

template <detail::EigenMatrix Matrix>
void receive(const Communicator& ranks, Matrix&& matrix, int from, int tag = 0) {
    receive(ranks, strided(matrix), from, tag);
}

template <detail::EigenMatrix Mine, detail::EigenMatrix All>
void all_gather_rows(const Communicator& ranks, const Mine& mine, All&& all, std::span<const Index> rows = {}) {
    all_gather_rows<typename Mine::Scalar>(ranks, strided(mine), strided(all), rows);
}

template <detail::EigenMatrix Mine, detail::EigenMatrix All>
void all_gather_cols(const Communicator& ranks, const Mine& mine, All&& all, std::span<const Index> cols = {}) {
    all_gather_cols<typename Mine::Scalar>(ranks, strided(mine), strided(all), cols);
}

template <detail::EigenMatrix All, detail::EigenMatrix Mine>
void reduce_scatter_rows(const Communicator& ranks, const All& all, Mine&& mine, Reduction reduction = Reduction::sum,
                         std::span<const Index> rows = {}) {
    reduce_scatter_rows<typename All::Scalar>(ranks, strided(all), strided(mine), reduction, rows);
}

template <detail::EigenMatrix All, detail::EigenMatrix Mine>
void reduce_scatter_cols(const Communicator& ranks, const All& all, Mine&& mine, Reduction reduction = Reduction::sum,
                         std::span<const Index> cols = {}) {
    reduce_scatter_cols<typename All::Scalar>(ranks, strided(all), strided(mine), reduction, cols);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
