#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/lanes.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// One step's numbers, the corrections for the moments' start at zero included.
struct AdamWCoefficients {
    double learning_rate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;    // taken off the weight directly, times the learning rate
    double correction1 = 1;     // 1 - beta1^step
    double correction2 = 1;     // 1 - beta2^step
    double gradient_factor = 1; // what clipping scales the gradient by
};

/// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w -= rate (m' / (sqrt(v') + epsilon) + decay w), where
/// m' and v' are corrected for their start.
///
/// Source  Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2
template <class T>
void adamw_update(T* weight, const T* gradient, T* first_moment, T* second_moment, Index count,
                  const AdamWCoefficients& c) {
    using detail::Lanes;
    const auto all = [](double value) { return Lanes<T>::all(T(value)); };
    const auto clip = all(c.gradient_factor), keep1 = all(c.beta1), keep2 = all(c.beta2);
    const auto take1 = all(1 - c.beta1), take2 = all(1 - c.beta2), epsilon = all(c.epsilon);
    const auto scale2 = all(1 / c.correction2), rate = all(-c.learning_rate / c.correction1);
    const auto shrink = all(1 - c.learning_rate * c.weight_decay);
    detail::for_each_register<T>(count, [=](Index i, Index n) {
        const auto g = Lanes<T>::load(gradient + i, n) * clip;
        const auto m = fused(Lanes<T>::load(first_moment + i, n), keep1, g * take1);
        const auto v = fused(Lanes<T>::load(second_moment + i, n), keep2, g * g * take2);
        const auto move = m / (square_root(v * scale2) + epsilon);
        m.store(first_moment + i, n);
        v.store(second_moment + i, n);
        fused(move, rate, Lanes<T>::load(weight + i, n) * shrink).store(weight + i, n);
    });
}

/// Sum of squares of neighbouring elements, in double over blocks of a few thousand.
template <class T>
double sum_of_squares(const T* x, Index count) {
    constexpr Index block = 4096;
    double total = 0;
    for (Index first = 0; first < count; first += block)
        total += double(detail::sum_over_row<T>(std::min(block, count - first), [=](auto sum, Index i, Index n) {
            const auto value = detail::Lanes<T>::load(x + first + i, n);
            return fused(value, value, sum);
        }));
    return total;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
