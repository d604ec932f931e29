#pragma once

// y = (x - mean) / sqrt(variance + epsilon) * scale + shift; RMS: no mean, no shift.

#include "reference/matrix.hpp"

#include <cmath>
#include <vector>

namespace reference {

struct NormResult {
    Matrix y, normalised;
    std::vector<double> inverse_deviation;
};

inline NormResult norm_forward(const Matrix& x, const Matrix& scale, const Matrix* shift, double epsilon) {
    NormResult result{Matrix(x.rows(), x.cols()), Matrix(x.rows(), x.cols()),
                      std::vector<double>(std::size_t(x.rows()))};
    for (Index i = 0; i < x.rows(); ++i) {
        double mean = 0, variance = 0;
        for (Index j = 0; j < x.cols() && shift; ++j)
            mean += x(i, j) / double(x.cols());
        for (Index j = 0; j < x.cols(); ++j)
            variance += (x(i, j) - mean) * (x(i, j) - mean) / double(x.cols());
        result.inverse_deviation[std::size_t(i)] = 1 / std::sqrt(variance + epsilon);
        for (Index j = 0; j < x.cols(); ++j) {
            result.normalised(i, j) = (x(i, j) - mean) * result.inverse_deviation[std::size_t(i)];
            result.y(i, j) = result.normalised(i, j) * scale(0, j) + (shift ? (*shift)(0, j) : 0.0);
        }
    }
    return result;
}

inline Matrix norm_backward(const NormResult& saved, const Matrix& scale, const Matrix& dy, Matrix& dscale,
                            Matrix* dshift) {
    Matrix dx(dy.rows(), dy.cols());
    for (Index i = 0; i < dy.rows(); ++i) {
        double mean_g = 0, mean_gn = 0; // of g = dy * scale, and of g times the normalised input
        for (Index j = 0; j < dy.cols(); ++j) {
            mean_g += dy(i, j) * scale(0, j) / double(dy.cols());
            mean_gn += dy(i, j) * scale(0, j) * saved.normalised(i, j) / double(dy.cols());
            dscale(0, j) += dy(i, j) * saved.normalised(i, j);
            if (dshift)
                (*dshift)(0, j) += dy(i, j);
        }
        for (Index j = 0; j < dy.cols(); ++j)
            dx(i, j) = saved.inverse_deviation[std::size_t(i)] *
                       (dy(i, j) * scale(0, j) - (dshift ? mean_g : 0.0) - saved.normalised(i, j) * mean_gn);
    }
    return dx;
}

} // namespace reference
