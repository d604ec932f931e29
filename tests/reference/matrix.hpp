#pragma once

// Products in plain loops. No file of this folder includes anything of the library: loops follow the formulas, and
// nothing is meant to be fast.

#include <Eigen/Core>

namespace reference {

using Index = Eigen::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline double dot(const double* a, const double* b, Index count) {
    double sum = 0;
    for (Index i = 0; i < count; ++i)
        sum += a[i] * b[i];
    return sum;
}

/// y += factor x
inline void add_scaled(double factor, const double* x, double* y, Index count) {
    for (Index i = 0; i < count; ++i)
        y[i] += factor * x[i];
}

/// a b
inline Matrix product(const Matrix& a, const Matrix& b) {
    Matrix c = Matrix::Zero(a.rows(), b.cols());
    for (Index i = 0; i < a.rows(); ++i)
        for (Index k = 0; k < a.cols(); ++k)
            add_scaled(a(i, k), &b(k, 0), &c(i, 0), b.cols());
    return c;
}

/// c += a^T b
inline void add_transposed_product(const Matrix& a, const Matrix& b, Matrix& c) {
    for (Index k = 0; k < a.rows(); ++k)
        for (Index i = 0; i < a.cols(); ++i)
            add_scaled(a(k, i), &b(k, 0), &c(i, 0), b.cols());
}

} // namespace reference
