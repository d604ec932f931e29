#include <reigen/kernel/activation.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace activation_test {

using reigen::Index;

double gelu_in_double(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double silu_in_double(double x) {
    return x / (1 + std::exp(-x));
}

double slope(double (*f)(double), double x) {
    return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}

/// -9 ... 9, one element per `count`.
template <class T>
std::vector<T> spread(Index count) {
    std::vector<T> x;
    for (Index i = 0; i < count; ++i)
        x.push_back(T(-9 + 18 * (double(i) + 0.5) / double(count)));
    return x;
}

template <class T>
class activation : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(activation, Scalars);

template <class T>
double allowed(double size) {
    return 16 * double(std::numeric_limits<T>::epsilon()) * (1 + std::abs(size));
}

TYPED_TEST(activation, gelu_and_its_slope) {
    using T = TypeParam;
    for (const Index count : {0, 1, 5, 16, 67}) {
        const auto x = spread<T>(count);
        std::vector<T> y(x.size()), dx(x.size(), T(2));
        reigen::gelu(x.data(), y.data(), count);
        reigen::gelu_backward(x.data(), dx.data(), dx.data(), count);
        for (std::size_t i = 0; i < x.size(); ++i) {
            EXPECT_NEAR(y[i], gelu_in_double(double(x[i])), allowed<T>(double(x[i])));
            EXPECT_NEAR(dx[i], 2 * slope(gelu_in_double, double(x[i])), 1e-8 + 2 * allowed<T>(double(x[i])));
        }
    }
}

TYPED_TEST(activation, swiglu_and_its_slopes) {
    using T = TypeParam;
    for (const Index count : {0, 1, 5, 16, 67}) {
        const auto gate = spread<T>(count);
        std::vector<T> up(gate.size()), y(gate.size()), dgate = gate, dup(gate.size()), dy(gate.size(), T(0.5));
        for (std::size_t i = 0; i < up.size(); ++i)
            dup[i] = up[i] = T(std::cos(double(i)));
        reigen::swiglu(gate.data(), up.data(), y.data(), count);
        reigen::swiglu_backward(dgate.data(), dup.data(), dy.data(), dgate.data(), dup.data(), count);
        for (std::size_t i = 0; i < gate.size(); ++i) {
            const double g = double(gate[i]), u = double(up[i]);
            EXPECT_NEAR(y[i], silu_in_double(g) * u, allowed<T>(g));
            EXPECT_NEAR(dgate[i], 0.5 * slope(silu_in_double, g) * u, 1e-8 + allowed<T>(g));
            EXPECT_NEAR(dup[i], 0.5 * silu_in_double(g), allowed<T>(g));
        }
    }
}

template <class T>
void expect_almost(const std::vector<T>& x, const std::vector<T>& want) {
    for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(x[i], want[i], 1e-20);
}

TYPED_TEST(activation, large_inputs_stay_finite) {
    using T = TypeParam;
    const std::vector<T> x = {T(-1e4), T(1e4), T(-1000), T(1000)};
    std::vector<T> y(4), dx(4, T(1)), dup(4, T(1));
    reigen::gelu(x.data(), y.data(), 4);
    expect_almost(y, {T(0), T(1e4), T(0), T(1000)});
    reigen::gelu_backward(x.data(), dx.data(), dx.data(), 4);
    expect_almost(dx, {T(0), T(1), T(0), T(1)});
    const std::vector<T> ones(4, T(1));
    reigen::swiglu(x.data(), ones.data(), y.data(), 4);
    expect_almost(y, {T(0), T(1e4), T(0), T(1000)});
    reigen::swiglu_backward(x.data(), ones.data(), ones.data(), dx.data(), dup.data(), 4);
    expect_almost(dx, {T(0), T(1), T(0), T(1)});
}

TYPED_TEST(activation, bits_do_not_depend_on_where_an_element_lies) {
    using T = TypeParam;
    const auto x = spread<T>(67);
    std::vector<T> all(67), one(67);
    reigen::gelu(x.data(), all.data(), 67);
    for (Index first = 0; first < 67; ++first) {
        reigen::gelu(x.data() + first, one.data(), 67 - first);
        for (Index i = first; i < 67; ++i)
            ASSERT_EQ(one[std::size_t(i - first)], all[std::size_t(i)]);
    }
}

} // namespace activation_test
