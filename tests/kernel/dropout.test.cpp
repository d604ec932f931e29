#include <reigen/kernel/dropout.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace dropout_test {

using reigen::DropoutPattern;
using reigen::Index;
using reigen::RandomStream;
using reigen::RowMatrix;
using Piece = reigen::Run; // testing::Test has a Run of its own
using reigen::Runs;

namespace {

RowMatrix<float> dropped(Index cols, const Runs& rows, const DropoutPattern& pattern) {
    RowMatrix<float> x(rows.size(), cols);
    for (Index i = 0; i < x.rows(); ++i)
        for (Index j = 0; j < cols; ++j)
            x(i, j) = float(1 + rows[i] * cols + j);
    reigen::dropout<float>(reigen::strided(x), rows, pattern);
    return x;
}

TEST(dropout, elements_are_zero_or_scaled) {
    const Index cols = 5;
    const auto x = dropped(cols, Runs::range(0, 40), {0.5, cols, RandomStream(1, 2)});
    Index zeros = 0;
    for (Index i = 0; i < x.size(); ++i) {
        EXPECT_TRUE(x.data()[i] == 0 || x.data()[i] == float(2 * (1 + i))) << i;
        zeros += x.data()[i] == 0;
    }
    EXPECT_GT(zeros, 70);
    EXPECT_LT(zeros, 130);
}

TEST(dropout, the_share_of_zeros_is_the_probability) {
    for (const double probability : {0.1, 0.25, 0.9}) {
        const auto x = dropped(64, Runs::range(0, 1000), {probability, 64, RandomStream(7, 3)});
        const double zeros = double((x.array() == 0).count()) / double(x.size());
        EXPECT_NEAR(zeros, probability, 0.008); // five standard deviations
    }
}

TEST(dropout, a_row_drops_the_same_elements_wherever_it_lies) {
    const DropoutPattern pattern(0.3, 7, RandomStream(5, 1));
    const auto whole = dropped(7, Runs::range(0, 12), pattern);
    const Runs rows = {Piece{1, 3, 4}, Piece{0, 1, 1}};
    const auto some = dropped(7, rows, pattern);
    for (Index i = 0; i < rows.size(); ++i)
        EXPECT_EQ(some.row(i), whole.row(rows[i]));
}

TEST(dropout, streams_differ) {
    const auto rows = Runs::range(0, 12);
    EXPECT_NE(dropped(7, rows, {0.3, 7, RandomStream(5, 1)}), dropped(7, rows, {0.3, 7, RandomStream(5, 2)}));
}

TEST(dropout, probability_zero_changes_nothing_and_one_is_refused) {
    const auto x = dropped(3, Runs::range(0, 2), {0, 3, RandomStream(1)});
    for (Index i = 0; i < 6; ++i)
        EXPECT_EQ(x.data()[i], float(1 + i));
    EXPECT_THROW(DropoutPattern(1, 3, RandomStream(1)), reigen::ArgumentError);
    EXPECT_THROW(DropoutPattern(-0.1, 3, RandomStream(1)), reigen::ArgumentError);
}

} // namespace

} // namespace dropout_test
