#include <train_gpt/verify.hpp>

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <sstream>

namespace verify_test {

using train_gpt::agrees_with_one_rank;
using train_gpt::largest_relative_difference;
using train_gpt::Options;

namespace {

bool agrees(double difference, const std::string& dtype) {
    Options options;
    options.dtype = dtype;
    const std::array<double, 3> losses = {5, 4 * (1 + difference), 100};
    const std::array<double, 2> one_rank = {5, 4};
    std::ostringstream out;
    return agrees_with_one_rank(out, losses, one_rank, options);
}

} // namespace

TEST(verify, a_difference_is_relative_and_the_largest_counts) {
    const std::array<double, 3> a = {1, 2.2, 3};
    const std::array<double, 3> b = {1, 2, 3.15};
    EXPECT_NEAR(largest_relative_difference(a, b), 0.1, 1e-15);
    EXPECT_EQ(largest_relative_difference(a, a), 0);
}

TEST(verify, a_loss_that_is_no_number_never_agrees) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::array<double, 2> good = {1, 2};
    const std::array<double, 2> bad = {nan, 2};
    EXPECT_EQ(largest_relative_difference(bad, good), std::numeric_limits<double>::infinity());
    EXPECT_EQ(largest_relative_difference(good, bad), std::numeric_limits<double>::infinity());
    EXPECT_FALSE(agrees(nan, "float"));
}

TEST(verify, the_limit_depends_on_the_scalar) {
    EXPECT_TRUE(agrees(0.9e-4, "float"));
    EXPECT_FALSE(agrees(1.1e-4, "float"));
    EXPECT_TRUE(agrees(0.9e-10, "double"));
    EXPECT_FALSE(agrees(-1.1e-10, "double"));
}

TEST(verify, as_many_steps_are_compared_as_there_are_up_to_twenty) {
    Options options;
    options.steps = 7;
    EXPECT_EQ(train_gpt::verified_steps(options), 7);
    options.steps = 700;
    EXPECT_EQ(train_gpt::verified_steps(options), 20);
}

} // namespace verify_test
