#pragma once

#include <reigen/core/types.hpp>
#include <reigen/kernel/lanes.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

// GELU in its tanh form is x sigmoid(u) with u = 2 sqrt(2/pi) (x + 0.044715 x^3).
inline constexpr double gelu_linear = 1.5957691216057308;
inline constexpr double gelu_cubic = 0.044715 * gelu_linear;

template <class T>
Lanes<T> gelu_gate(Lanes<T> x) {
    const auto square = x * x;
    return sigmoid(x * fused(square, Lanes<T>::all(T(gelu_cubic)), Lanes<T>::all(T(gelu_linear))));
}

} // namespace detail

/// y = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), `count` elements; y may be x.
template <class T>
void gelu(const T* x, T* y, Index count) {
    detail::for_each_register<T>(count, [=](Index i, Index n) {
        const auto value = detail::Lanes<T>::load(x + i, n);
        (value * detail::gelu_gate(value)).store(y + i, n);
    });
}

/// dx = dy gelu'(x); dx may be dy or x.
template <class T>
void gelu_backward(const T* x, const T* dy, T* dx, Index count) {
    detail::for_each_register<T>(count, [=](Index i, Index n) {
        const auto value = detail::Lanes<T>::load(x + i, n);
        const auto s = detail::gelu_gate(value);
        // u' x = x (linear + 3 cubic x^2); d/dx (x s) = s + s (1 - s) u' x
        const auto slope_x = value * fused(value * value, detail::Lanes<T>::all(T(3 * detail::gelu_cubic)),
                                           detail::Lanes<T>::all(T(detail::gelu_linear)));
        const auto s_slope = s * (detail::Lanes<T>::all(1) - s);
        (detail::Lanes<T>::load(dy + i, n) * fused(s_slope, slope_x, s)).store(dx + i, n);
    });
}

/// y = gate sigmoid(gate) up; y may be either.
template <class T>
void swiglu(const T* gate, const T* up, T* y, Index count) {
    detail::for_each_register<T>(count, [=](Index i, Index n) {
        const auto g = detail::Lanes<T>::load(gate + i, n);
        (g * sigmoid(g) * detail::Lanes<T>::load(up + i, n)).store(y + i, n);
    });
}

/// dgate = dy up silu'(gate), dup = dy silu(gate); dgate may be gate, dup may be up.
template <class T>
void swiglu_backward(const T* gate, const T* up, const T* dy, T* dgate, T* dup, Index count) {
    detail::for_each_register<T>(count, [=](Index i, Index n) {
        const auto g = detail::Lanes<T>::load(gate + i, n);
        const auto d = detail::Lanes<T>::load(dy + i, n);
        const auto s = sigmoid(g);
        const auto silu = g * s;
        const auto slope = fused(silu, detail::Lanes<T>::all(1) - s, s); // s + g s (1 - s)
        const auto dg = d * detail::Lanes<T>::load(up + i, n) * slope;
        (d * silu).store(dup + i, n);
        dg.store(dgate + i, n);
    });
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
