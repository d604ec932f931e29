#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/layout/overlap.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

struct AssignElement {
    template <class To, class From>
    void operator()(To& to, const From& from) const {
        to = To(from);
    }
};

struct AddElement {
    template <class T>
    void operator()(T& to, const T& from) const {
        to = T(to + from);
    }
};

/// Applies the operation to n elements of either side.
template <class From, class To, class Operation>
void for_row(const From* from, Index from_stride, To* to, Index to_stride, Index n, Operation operation) {
    if (from_stride == 1 && to_stride == 1)
        for (Index j = 0; j < n; ++j)
            operation(to[j], from[j]);
    else
        for (Index j = 0; j < n; ++j)
            operation(to[j * to_stride], from[j * from_stride]);
}

/// Applies the operation to each pair of elements of two matrices of equal shape.
template <class From, class To, class Operation>
void for_block(Strided<const From> from, Strided<To> to, Operation operation) {
    if (from.is_contiguous() && to.is_contiguous())
        return for_row(from.data, 1, to.data, 1, from.size(), operation);
    for (Index i = 0; i < from.rows; ++i)
        for_row(from.data + i * from.row_stride, from.col_stride, to.data + i * to.row_stride, to.col_stride, from.cols,
                operation);
}

/// The elements at these local rows and columns.
template <class T>
Strided<T> selected(Strided<T> matrix, const Run& rows, const Run& cols) {
    return {matrix.data + rows.start * matrix.row_stride + cols.start * matrix.col_stride, rows.count, cols.count,
            rows.stride * matrix.row_stride, cols.stride * matrix.col_stride};
}

/// Where two matrices share rows and columns: to = from, or to += from.
template <class From, class To, class Operation = AssignElement>
void copy_block(const Overlap& rows, const Overlap& cols, Strided<const From> from, Strided<To> to,
                Operation operation = {}) {
    for (std::size_t r = 0; r < rows.first.size(); ++r)
        for (std::size_t c = 0; c < cols.first.size(); ++c)
            for_block(selected(from, rows.first[r], cols.first[c]), selected(to, rows.second[r], cols.second[c]),
                      operation);
}

/// A matrix stored row after row from `data` on.
template <class T>
Strided<T> row_major(T* data, Index rows, Index cols) {
    return {data, rows, cols, cols, 1};
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
