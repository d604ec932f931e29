#pragma once

// The mean over labels that count.

#include "reference/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reference {

struct LossResult {
    double loss = 0;
    Matrix dlogits; // of the mean
};

inline LossResult cross_entropy(const Matrix& logits, const std::vector<Index>& labels, double smoothing,
                                Index ignored_label) {
    LossResult result{0, Matrix::Zero(logits.rows(), logits.cols())};
    const Index classes = logits.cols();
    double counted = 0;
    for (const Index label : labels)
        counted += label != ignored_label;
    for (Index i = 0; i < logits.rows(); ++i) {
        const Index label = labels[std::size_t(i)];
        if (label == ignored_label)
            continue;
        double largest = logits(i, 0), sum = 0;
        for (Index j = 0; j < classes; ++j)
            largest = std::max(largest, logits(i, j));
        for (Index j = 0; j < classes; ++j)
            sum += std::exp(logits(i, j) - largest);
        const double lse = largest + std::log(sum);
        for (Index j = 0; j < classes; ++j) {
            const double wanted = j == label ? 1 - smoothing : smoothing / double(classes - 1);
            result.loss += wanted * (lse - logits(i, j)) / counted;
            result.dlogits(i, j) = (std::exp(logits(i, j) - lse) - wanted) / counted;
        }
    }
    return result;
}

} // namespace reference
