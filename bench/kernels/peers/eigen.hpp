#pragma once

#include "peers/product.hpp"

#include <Eigen/Core>

#include <string>

namespace peers::eigen {

inline std::string version() {
    return std::to_string(EIGEN_WORLD_VERSION) + '.' + std::to_string(EIGEN_MAJOR_VERSION) + '.' +
           std::to_string(EIGEN_MINOR_VERSION);
}

/// The matrix behind a strided view, in Eigen's own words: row-major, or its transpose; bfloat16 in float.
template <class T, class With>
void with_matrix(const reigen::Strided<const T>& x, With with) {
    using Matrix = Eigen::Map<const reigen::RowMatrix<T>, 0, Eigen::OuterStride<>>;
    using Sum = reigen::Accumulator<T>;
    if (x.col_stride == 1)
        with(Matrix(x.data, x.rows, x.cols, Eigen::OuterStride<>(x.row_stride)).template cast<Sum>());
    else
        with(Matrix(x.data, x.cols, x.rows, Eigen::OuterStride<>(x.col_stride)).transpose().template cast<Sum>());
}

/// In the type of the sums, also C: Eigen's own bfloat16 products round after every multiply-add.
template <class T>
Multiplication multiplication(Product<T> product) {
    using Sum = reigen::Accumulator<T>;
    const auto multiply = [=](const auto& a, const auto& b) {
        const auto& c = product.c;
        if constexpr (std::is_same_v<T, Sum>)
            Eigen::Map<reigen::RowMatrix<T>>(c.data, c.rows, c.cols).noalias() = a * b;
        else
            Eigen::Map<reigen::RowMatrix<T>>(c.data, c.rows, c.cols) = (a * b).template cast<T>();
    };
    return [=] {
        with_matrix(product.a, [&](const auto& a) { with_matrix(product.b, [&](const auto& b) { multiply(a, b); }); });
    };
}

} // namespace peers::eigen
