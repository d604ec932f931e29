#include <reigen/kernel/adamw.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace adamw_test {

using reigen::AdamWCoefficients;
using reigen::Index;

template <class T>
class adamw : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(adamw, Scalars);

TYPED_TEST(adamw, three_steps_follow_the_published_algorithm) {
    using T = TypeParam;
    const Index count = 21;
    std::vector<T> weight(count), gradient(count), m(count, T(0)), v(count, T(0));
    std::vector<double> want(count), want_m(count, 0), want_v(count, 0);
    for (std::size_t i = 0; i < weight.size(); ++i)
        weight[i] = T(want[i] = double(T(0.3 * std::sin(double(i)))));
    for (int step = 1; step <= 3; ++step) {
        AdamWCoefficients c{.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1};
        c.correction1 = 1 - std::pow(c.beta1, step);
        c.correction2 = 1 - std::pow(c.beta2, step);
        c.gradient_factor = 0.5;
        for (std::size_t i = 0; i < weight.size(); ++i) {
            gradient[i] = T(std::cos(double(i) * step));
            const double g = 0.5 * double(gradient[i]);
            want_m[i] = c.beta1 * want_m[i] + (1 - c.beta1) * g;
            want_v[i] = c.beta2 * want_v[i] + (1 - c.beta2) * g * g;
            const double move = want_m[i] / c.correction1 / (std::sqrt(want_v[i] / c.correction2) + c.epsilon);
            want[i] -= c.learning_rate * (move + c.weight_decay * want[i]);
        }
        reigen::adamw_update(weight.data(), gradient.data(), m.data(), v.data(), count, c);
    }
    for (std::size_t i = 0; i < weight.size(); ++i)
        EXPECT_NEAR(weight[i], want[i], 4 * double(std::numeric_limits<T>::epsilon()));
}

TYPED_TEST(adamw, squares_are_summed_without_losing_small_ones) {
    using T = TypeParam;
    std::vector<T> x(100003);
    double want = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = T(0.5 * double(i / 4096)); // exact, and different in each block
        want += double(x[i]) * double(x[i]);
    }
    EXPECT_EQ(reigen::sum_of_squares(x.data(), 100003), want);
    EXPECT_EQ(reigen::sum_of_squares(x.data(), 0), 0);
    EXPECT_EQ(reigen::sum_of_squares(x.data() + 8192, 2), 2);
}

} // namespace adamw_test
