#pragma once

#include <Eigen/Core>

#include <cmath>
#include <functional>

namespace own_loop {

using Matrix = Eigen::MatrixXd;

/// Sizes of the network and of its training.
struct Settings {
    int samples = 256;
    int inputs = 16;
    int hidden = 96;
    int outputs = 8;
    int steps = 100;
    double rate = 0.2;
};

/// Called after every step.
using Report = std::function<void(int step, double loss)>;

/// Numbers between -scale and scale, the same in every run.
inline Matrix numbers(int rows, int cols, double scale, double seed) {
    return Matrix::NullaryExpr(rows, cols, [=](Eigen::Index i, Eigen::Index j) {
        return scale * std::sin(seed * double(1 + i) + 0.7 * seed * seed * double(1 + j) + double(i * j));
    });
}

} // namespace own_loop
