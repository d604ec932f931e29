#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <type_traits>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A matrix somebody else owns, with both strides free: element (i, j) is `data[i * row_stride + j * col_stride]`.
///
/// The one form in which matrices cross into the kernels: either storage order, blocks and transposes of Eigen
/// matrices are all this. Strides count elements.
template <class Scalar>
struct Strided {
    Scalar* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index row_stride = 0;
    Index col_stride = 1;

    Scalar& operator()(Index i, Index j) const { return data[i * row_stride + j * col_stride]; }

    /// Where row i begins, also where it has no element.
    Scalar* row(Index i) const { return empty() ? data : data + i * row_stride; }

    Index size() const { return rows * cols; }
    bool empty() const { return rows == 0 || cols == 0; }

    Strided transpose() const { return {data, cols, rows, col_stride, row_stride}; }

    Strided block(Index first_row, Index first_col, Index row_count, Index col_count) const {
        return {data + first_row * row_stride + first_col * col_stride, row_count, col_count, row_stride, col_stride};
    }

    /// Whether the elements lie one after the other, row by row.
    bool is_contiguous() const {
        return empty() || ((cols == 1 || col_stride == 1) && (rows == 1 || row_stride == cols));
    }

    operator Strided<const Scalar>() const
        requires(!std::is_const_v<Scalar>)
    {
        return {data, rows, cols, row_stride, col_stride};
    }

    /// The same elements as an Eigen map that can be read, or assigned to where `Scalar` is not const.
    auto map() const {
        using Plain = RowMatrix<std::remove_const_t<Scalar>>;
        using Matrix = std::conditional_t<std::is_const_v<Scalar>, const Plain, Plain>;
        using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
        return Eigen::Map<Matrix, 0, Stride>(data, rows, cols, Stride(row_stride, col_stride));
    }
};

namespace detail {

/// Throws where there cannot be such a view: of negative sizes, or of elements without memory.
template <class Scalar>
void require_elements(const Strided<Scalar>& view, const char* what) {
    require<ShapeError>(view.rows >= 0 && view.cols >= 0, what, ": a matrix of ", shape(view.rows, view.cols));
    require(view.data != nullptr || view.empty(), what, ": null data, ", shape(view.rows, view.cols), " elements");
}

} // namespace detail

/// View of an Eigen matrix, map, block or transpose that has its elements in memory.
template <class Derived>
auto strided(const Eigen::MatrixBase<Derived>& matrix) {
    static_assert(bool(Derived::Flags & Eigen::DirectAccessBit),
                  "reigen: this Eigen expression has no memory of its own; evaluate it into a matrix first");
    const Derived& m = matrix.derived();
    const Index outer = m.outerStride();
    const Index inner = m.innerStride();
    return Strided<const typename Derived::Scalar>{m.data(), m.rows(), m.cols(), Derived::IsRowMajor ? outer : inner,
                                                   Derived::IsRowMajor ? inner : outer};
}

/// The same, writable.
template <class Derived>
auto strided(Eigen::MatrixBase<Derived>& matrix) {
    using Scalar = std::remove_pointer_t<decltype(matrix.derived().data())>;
    const auto view = strided(std::as_const(matrix));
    return Strided<Scalar>{matrix.derived().data(), view.rows, view.cols, view.row_stride, view.col_stride};
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
