#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/lanes.hpp>

#include <cmath>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What normalising the rows of x needs besides x, and what its backward pass wants back. Pointers to `cols` elements
/// (parameters) or `rows` elements (statistics); `shift` is null where there is none.
template <class T>
struct NormParameters {
    const T* scale = nullptr;
    const T* shift = nullptr;
    T epsilon = T(1e-5);
    bool centred = true; // LayerNorm; RMSNorm otherwise
};

template <class T>
struct RowStatistics {
    T* mean = nullptr; // not used by RMSNorm
    T* inverse_deviation = nullptr;
};

namespace detail {

template <class T>
T row_mean(const T* x, Index cols) {
    return sum_over_row<T>(cols, [x](auto sum, Index i, Index n) { return sum + Lanes<T>::load(x + i, n); }) / T(cols);
}

/// Mean of (x - mean)^2; a second pass over the row, because the difference of two sums of squares loses digits.
template <class T>
T row_variance(const T* x, Index cols, T mean) {
    const auto centre = Lanes<T>::all(mean);
    const T squares = sum_over_row<T>(cols, [x, mean, centre](auto sum, Index i, Index n) {
        const auto d = Lanes<T>::load(x + i, n, mean) - centre;
        return fused(d, d, sum);
    });
    return squares / T(cols);
}

template <class T>
void normalise_row(const T* x, Index cols, const NormParameters<T>& parameters, T mean, T inverse_deviation, T* y) {
    const auto centre = Lanes<T>::all(mean);
    const auto factor = Lanes<T>::all(inverse_deviation);
    for_each_register<T>(cols, [&](Index i, Index n) {
        const auto normal = (Lanes<T>::load(x + i, n) - centre) * factor;
        const auto scale = Lanes<T>::load(parameters.scale + i, n);
        const auto shift = parameters.shift ? Lanes<T>::load(parameters.shift + i, n) : Lanes<T>::all(0);
        fused(normal, scale, shift).store(y + i, n);
    });
}

/// With n the normalised row and g = dy scale: dx += inverse_deviation (g - mean(g) - n mean(g n)), mean(g) only
/// where the row was centred; dscale += dy n; dshift += dy.
template <class T>
void norm_row_backward(const T* x, const T* dy, Index cols, const NormParameters<T>& parameters, T mean,
                       T inverse_deviation, T* dx, T* dscale, T* dshift) {
    const auto centre = Lanes<T>::all(mean);
    const auto factor = Lanes<T>::all(inverse_deviation);
    const auto normal = [=](Index i, Index n) { return (Lanes<T>::load(x + i, n) - centre) * factor; };
    const auto add_g = [=, scale = parameters.scale](auto sum, Index i, Index n) {
        return fused(Lanes<T>::load(dy + i, n), Lanes<T>::load(scale + i, n), sum);
    };
    const auto add_gn = [=, scale = parameters.scale](auto sum, Index i, Index n) {
        return fused(Lanes<T>::load(dy + i, n) * Lanes<T>::load(scale + i, n), normal(i, n), sum);
    };
    const auto minus_mean_gn = Lanes<T>::all(-sum_over_row<T>(cols, add_gn) / T(cols));
    const auto minus_mean_g = Lanes<T>::all(parameters.centred ? -sum_over_row<T>(cols, add_g) / T(cols) : T(0));
    for_each_register<T>(cols, [&](Index i, Index n) {
        const auto d = Lanes<T>::load(dy + i, n);
        const auto z = normal(i, n);
        fused(d, z, Lanes<T>::load(dscale + i, n)).store(dscale + i, n);
        if (dshift)
            (Lanes<T>::load(dshift + i, n) + d).store(dshift + i, n);
        fused(factor, fused(z, minus_mean_gn, add_g(minus_mean_g, i, n)), Lanes<T>::load(dx + i, n)).store(dx + i, n);
    });
}

template <class X, class T>
void require_rows_of_neighbours(const char* what, Strided<X> x, Strided<const T> like) {
    require<ShapeError>(x.rows == like.rows && x.cols == like.cols, what, ": x is ", shape(like.rows, like.cols),
                        ", another matrix ", shape(x.rows, x.cols));
    require<ShapeError>(x.col_stride == 1 || x.empty(), what,
                        ": the elements of a row must be neighbours, the column stride is ", x.col_stride);
}

} // namespace detail

/// y = (x - mean) / sqrt(variance + epsilon) * scale + shift, row by row; not centred: x / sqrt(mean x^2 + epsilon) *
/// scale. Leaves each row's statistics for the backward pass. y may be x.
template <class T>
void normalise(Strided<const T> x, const NormParameters<T>& parameters, Strided<T> y, RowStatistics<T> statistics) {
    detail::require_rows_of_neighbours("normalise", x, x);
    detail::require_rows_of_neighbours("normalise", y, x);
    for (Index i = 0; i < x.rows; ++i) {
        const T* row = x.row(i);
        const T mean = parameters.centred ? detail::row_mean(row, x.cols) : T(0);
        const T inverse = T(1) / std::sqrt(detail::row_variance(row, x.cols, mean) + parameters.epsilon);
        if (parameters.centred)
            statistics.mean[i] = mean;
        statistics.inverse_deviation[i] = inverse;
        detail::normalise_row(row, x.cols, parameters, mean, inverse, y.row(i));
    }
}

/// Adds the gradients of `normalise` to dx, dscale and dshift (null where there is none).
///
/// Order   dscale and dshift sum the rows one after the other
template <class T>
void normalise_backward(Strided<const T> x, const NormParameters<T>& parameters, RowStatistics<const T> statistics,
                        Strided<const T> dy, Strided<T> dx, T* dscale, T* dshift) {
    detail::require_rows_of_neighbours("normalise_backward", x, x);
    detail::require_rows_of_neighbours("normalise_backward", dy, x);
    detail::require_rows_of_neighbours("normalise_backward", dx, x);
    for (Index i = 0; i < x.rows; ++i)
        detail::norm_row_backward(x.row(i), dy.row(i), x.cols, parameters,
                                  parameters.centred ? statistics.mean[i] : T(0), statistics.inverse_deviation[i],
                                  dx.row(i), dscale, dshift);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
