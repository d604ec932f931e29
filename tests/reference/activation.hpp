#pragma once

#include <cmath>
#include <numbers>

namespace reference {

/// The tanh form of GELU, and its derivative.
inline double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
inline double gelu_slope(double x) {
    const double c = std::sqrt(2 / std::numbers::pi);
    const double t = std::tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

inline double silu(double x) {
    return x / (1 + std::exp(-x));
}
inline double silu_slope(double x) {
    const double s = 1 / (1 + std::exp(-x));
    return s + x * s * (1 - s);
}

} // namespace reference
