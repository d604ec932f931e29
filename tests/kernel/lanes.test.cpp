#include <reigen/kernel/lanes.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace lanes_test {

using reigen::Index;
using reigen::detail::Lanes;

template <class T>
class lanes : public testing::Test {
  protected:
    /// f on one number, in every lane.
    template <class Function>
    static T of(T x, Function f) {
        T result[Lanes<T>::size];
        f(Lanes<T>::all(x)).store(result);
        for (const T lane : result)
            EXPECT_TRUE(lane == result[0] || (std::isnan(lane) && std::isnan(result[0])));
        return result[0];
    }
    static T exp_of(T x) {
        return of(x, [](auto a) { return exp(a); });
    }
    static T sigmoid_of(T x) {
        return of(x, [](auto a) { return sigmoid(a); });
    }
};

using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(lanes, Scalars);

TYPED_TEST(lanes, exp_is_within_one_and_a_half_units_over_the_whole_range) {
    using T = TypeParam;
    const T last = reigen::detail::largest_exponent<T> * T(0.98);
    long double worst = 0;
    for (int i = -20000; i <= 20000; ++i) {
        const T x = last * T(i) / T(20000);
        const long double want = std::exp(static_cast<long double>(x));
        worst = std::max(worst, std::abs(static_cast<long double>(this->exp_of(x)) - want) / want);
    }
    EXPECT_LE(double(worst), 1.5 * double(std::numeric_limits<T>::epsilon()));
}

TYPED_TEST(lanes, exp_is_exact_at_its_ends) {
    using T = TypeParam;
    const T infinity = std::numeric_limits<T>::infinity();
    EXPECT_EQ(this->exp_of(T(0)), T(1));
    EXPECT_EQ(this->exp_of(-infinity), T(0));
    EXPECT_EQ(this->exp_of(T(-1e4)), T(0));
    EXPECT_TRUE(std::isnan(this->exp_of(std::numeric_limits<T>::quiet_NaN())));
}

TYPED_TEST(lanes, sigmoid_saturates_and_keeps_nan) {
    using T = TypeParam;
    EXPECT_EQ(this->sigmoid_of(T(0)), T(0.5));
    EXPECT_EQ(this->sigmoid_of(T(1e4)), T(1));
    EXPECT_NEAR(this->sigmoid_of(T(-1e4)), 0, 1e-37);
    EXPECT_NEAR(this->sigmoid_of(T(2)), 1 / (1 + std::exp(-2.0)), 1e-7);
    EXPECT_TRUE(std::isnan(this->sigmoid_of(std::numeric_limits<T>::quiet_NaN())));
}

TYPED_TEST(lanes, a_partial_load_pads_and_a_partial_store_leaves_the_rest) {
    using T = TypeParam;
    std::vector<T> from(64), to(64, T(-1));
    for (std::size_t i = 0; i < 64; ++i)
        from[i] = T(i + 1);
    for (Index count = 0; count <= Lanes<T>::size; ++count) {
        const auto part = Lanes<T>::load(from.data(), count, T(7));
        T all[Lanes<T>::size];
        part.store(all);
        for (Index i = 0; i < Lanes<T>::size; ++i)
            EXPECT_EQ(all[i], i < count ? T(i + 1) : T(7));
        std::fill(to.begin(), to.end(), T(-1));
        part.store(to.data(), count);
        for (Index i = 0; i < 64; ++i)
            EXPECT_EQ(to[std::size_t(i)], i < count ? T(i + 1) : T(-1));
    }
}

TYPED_TEST(lanes, a_row_is_visited_once_by_sums_and_by_registers) {
    using T = TypeParam;
    std::vector<T> row(200);
    for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = T(i + 1);
    for (Index count = 0; count <= 200; ++count) {
        const T sum = reigen::detail::sum_over_row<T>(
            count, [&](auto s, Index i, Index n) { return s + Lanes<T>::load(row.data() + i, n); });
        EXPECT_EQ(sum, T(count * (count + 1) / 2));
        Index next = 0;
        reigen::detail::for_each_register<T>(count, [&](Index i, Index n) {
            EXPECT_EQ(i, next);
            next += n;
        });
        EXPECT_EQ(next, count);
    }
}

} // namespace lanes_test
