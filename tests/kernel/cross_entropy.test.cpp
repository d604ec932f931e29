#include <reigen/kernel/cross_entropy.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace cross_entropy_test {

using reigen::Index;

template <class T>
class cross_entropy_kernel : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(cross_entropy_kernel, Scalars);

template <class T>
std::vector<T> some_logits(Index count) {
    std::vector<T> z;
    for (Index i = 0; i < count; ++i)
        z.push_back(T(3 * std::sin(double(i * i)) + double(i % 7) - 20)); // all below 0, the padding of a short load
    return z;
}

TYPED_TEST(cross_entropy_kernel, maximum_sum_and_sum_of_exponentials) {
    using T = TypeParam;
    const double eps = double(std::numeric_limits<T>::epsilon());
    for (const Index count : {1, 2, 16, 33, 257}) {
        const auto z = some_logits<T>(count);
        T largest = z[0];
        double sum = 0, sizes = 0, exponentials = 0;
        for (const T value : z)
            largest = std::max(largest, value);
        for (const T value : z) {
            sum += double(value);
            sizes += std::abs(double(value));
            exponentials += std::exp(double(value) - double(largest));
        }
        EXPECT_EQ(reigen::row_maximum(z.data(), count), largest);
        EXPECT_NEAR(reigen::row_sum(z.data(), count), sum, 8 * eps * sizes);
        EXPECT_NEAR(reigen::row_sum_of_exponentials(z.data(), count, largest), exponentials, 20 * eps * exponentials);
    }
}

TYPED_TEST(cross_entropy_kernel, no_logits_have_maximum_minus_infinity_and_sum_zero) {
    using T = TypeParam;
    EXPECT_EQ(reigen::row_maximum<T>(nullptr, 0), -std::numeric_limits<T>::infinity());
    EXPECT_EQ(reigen::row_sum_of_exponentials<T>(nullptr, 0, T(3)), T(0));
}

TYPED_TEST(cross_entropy_kernel, a_logit_of_minus_infinity_adds_exactly_nothing) {
    using T = TypeParam;
    const T gone = -std::numeric_limits<T>::infinity();
    std::vector<T> z = {T(2), gone, gone};
    EXPECT_EQ(reigen::row_maximum(z.data(), 3), T(2));
    EXPECT_EQ(reigen::row_sum_of_exponentials(z.data(), 3, T(2)), T(1));
    reigen::softmax_gradient_row(z.data(), 3, T(2), T(0), T(0.5));
    EXPECT_EQ(z, (std::vector<T>{T(0.5), T(0), T(0)}));
}

TYPED_TEST(cross_entropy_kernel, the_gradient_is_the_softmax_less_what_is_wanted) {
    using T = TypeParam;
    const auto z = some_logits<T>(37);
    double sum = 0;
    for (const T value : z)
        sum += std::exp(double(value));
    auto gradient = z;
    reigen::softmax_gradient_row(gradient.data(), 37, T(std::log(sum)), T(0.01), T(0.25));
    for (std::size_t j = 0; j < z.size(); ++j)
        EXPECT_NEAR(gradient[j], 0.25 * (std::exp(double(z[j])) / sum - 0.01),
                    4 * double(std::numeric_limits<T>::epsilon()));
}

} // namespace cross_entropy_test
