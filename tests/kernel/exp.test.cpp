#include <reigen/kernel/exp.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace exp_test {

using reigen::Index;
using reigen::detail::lanes;

/// 2^t in every lane, which must all be the same.
template <class T>
T power(T t) {
    T lane[lanes<T>];
    reigen::detail::store<T>(lane, reigen::detail::exp2<T>(reigen::detail::broadcast<T>(t)));
    for (int i = 1; i < lanes<T>; ++i)
        EXPECT_TRUE(lane[i] == lane[0] || (std::isnan(lane[i]) && std::isnan(lane[0])));
    return lane[0];
}

/// Largest error over a range, in units of the last place of the exact result.
template <class T>
double worst_error(double from, double to, int steps) {
    double worst = 0;
    for (int i = 0; i <= steps; ++i) {
        const T t = T(from + (to - from) * i / steps);
        const long double exact = std::exp2((long double)t);
        int exponent = 0;
        std::frexp(double(exact), &exponent);
        const long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
        worst = std::max(worst, double(std::abs((long double)power(t) - exact) / unit));
    }
    return worst;
}

template <class T>
class power_of_two : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(power_of_two, Types);

TYPED_TEST(power_of_two, is_within_two_units_of_the_last_place) {
    const double lowest = std::numeric_limits<TypeParam>::min_exponent - 1;
    for (const double error : {worst_error<TypeParam>(lowest, 0, 40000), worst_error<TypeParam>(-2, 2, 40000),
                               worst_error<TypeParam>(-1e-3, 1e-3, 4000), worst_error<TypeParam>(0, 120, 4000)})
        EXPECT_LE(error, 2.0);
}

TYPED_TEST(power_of_two, of_zero_is_one_exactly) {
    EXPECT_EQ(power(TypeParam(0)), TypeParam(1));
    EXPECT_EQ(power(TypeParam(-0.0)), TypeParam(1));
}

TYPED_TEST(power_of_two, below_the_smallest_normal_number_is_zero) {
    using Limits = std::numeric_limits<TypeParam>;
    const TypeParam lowest = Limits::min_exponent - 1;
    EXPECT_EQ(power(lowest), Limits::min());
    EXPECT_EQ(power(std::nextafter(lowest, TypeParam(-1e6))), TypeParam(0));
    EXPECT_EQ(power(lowest - TypeParam(0.5)), TypeParam(0));
    EXPECT_EQ(power(lowest - TypeParam(1)), TypeParam(0));
    EXPECT_EQ(power(TypeParam(-1e30)), TypeParam(0));
    EXPECT_EQ(power(-Limits::infinity()), TypeParam(0));
    EXPECT_FALSE(std::signbit(power(-Limits::infinity())));
}

TYPED_TEST(power_of_two, of_not_a_number_is_not_a_number) {
    EXPECT_TRUE(std::isnan(power(std::numeric_limits<TypeParam>::quiet_NaN())));
    EXPECT_TRUE(std::isnan(power(-std::numeric_limits<TypeParam>::quiet_NaN())));
}

} // namespace exp_test
