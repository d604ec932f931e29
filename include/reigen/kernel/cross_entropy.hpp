#pragma once

#include <reigen/core/strided.hpp>
#include <reigen/kernel/lanes.hpp>

#include <cmath>
#include <limits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The largest of `count` elements; -infinity of none.
template <class T>
T row_maximum(const T* z, Index count) {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    auto largest = detail::Lanes<T>::all(lowest);
    detail::for_each_register<T>(
        count, [&](Index i, Index n) { largest = max(largest, detail::Lanes<T>::load(z + i, n, lowest)); });
    return detail::max_of_lanes(largest);
}

/// sum exp(z - largest), for a finite `largest`.
template <class T>
T row_sum_of_exponentials(const T* z, Index count, T largest) {
    const auto top = detail::Lanes<T>::all(largest);
    return detail::sum_over_row<T>(count, [=](auto sum, Index i, Index n) {
        return sum + exp(detail::Lanes<T>::load(z + i, n, -std::numeric_limits<T>::infinity()) - top);
    });
}

template <class T>
T row_sum(const T* z, Index count) {
    return detail::sum_over_row<T>(count,
                                   [=](auto sum, Index i, Index n) { return sum + detail::Lanes<T>::load(z + i, n); });
}

/// z = factor (exp(z - lse) - others), in place: the gradient of a row's loss but for its label.
template <class T>
void softmax_gradient_row(T* z, Index count, T lse, T others, T factor) {
    detail::for_each_register<T>(count, [=](Index i, Index n) {
        const auto p = exp(detail::Lanes<T>::load(z + i, n) - detail::Lanes<T>::all(lse));
        ((p - detail::Lanes<T>::all(others)) * detail::Lanes<T>::all(factor)).store(z + i, n);
    });
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
