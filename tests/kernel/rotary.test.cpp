#include <reigen/kernel/rotary.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

namespace rotary_test {

using reigen::Index;
using reigen::RotaryTable;
using reigen::RowMatrix;
using Piece = reigen::Run; // testing::Test has a Run of its own
using reigen::Rotation;
using reigen::Runs;

RowMatrix<double> some_heads(Index rows, Index cols) {
    RowMatrix<double> x(rows, cols);
    for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < cols; ++j)
            x(i, j) = std::sin(double(1 + i * 31 + j * j));
    return x;
}

template <class T>
class rotary : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(rotary, Scalars);

TYPED_TEST(rotary, pairs_turn_by_their_global_position) {
    using T = TypeParam;
    const Runs positions = {Piece{2, 1, 2}, Piece{20, 5, 2}};
    for (const Index head_dim : {2, 6, 40}) {
        const RotaryTable<T> table(positions, head_dim, 100);
        const RowMatrix<double> before = some_heads(8, 3 * head_dim); // two sequences of four tokens, three heads
        RowMatrix<T> x = before.cast<T>();
        reigen::rotary<T>(reigen::strided(x), table, Rotation::forwards);
        for (Index row = 0; row < 8; ++row)
            for (Index head = 0; head < 3; ++head)
                for (Index i = 0; i < head_dim / 2; ++i) {
                    const Index a = head * head_dim + i, b = a + head_dim / 2;
                    const double angle = double(positions[row % 4]) / std::pow(100, 2 * double(i) / double(head_dim));
                    const auto want = std::complex(before(row, a), before(row, b)) * std::polar(1.0, angle);
                    const double allowed = 4 * (1 + angle) * double(std::numeric_limits<T>::epsilon());
                    EXPECT_NEAR(x(row, a), want.real(), allowed);
                    EXPECT_NEAR(x(row, b), want.imag(), allowed);
                }
    }
}

TYPED_TEST(rotary, turning_back_is_the_adjoint_and_the_inverse) {
    using T = TypeParam;
    const RotaryTable<T> table(Runs::range(5, 4), 8);
    const RowMatrix<double> before = some_heads(4, 16);
    RowMatrix<T> x = before.cast<T>(), y = some_heads(5, 16).bottomRows(4).cast<T>();
    const RowMatrix<T> y_before = y;
    reigen::rotary<T>(reigen::strided(x), table, Rotation::forwards);
    reigen::rotary<T>(reigen::strided(y), table, Rotation::backwards);
    double left = 0, right = 0;
    for (Index i = 0; i < x.size(); ++i) {
        left += double(x.data()[i]) * double(y_before.data()[i]);
        right += before.data()[i] * double(y.data()[i]);
    }
    EXPECT_NEAR(left, right, 100 * double(std::numeric_limits<T>::epsilon()));
    reigen::rotary<T>(reigen::strided(x), table, Rotation::backwards);
    for (Index i = 0; i < x.size(); ++i)
        EXPECT_NEAR(x.data()[i], before.data()[i], 4 * double(std::numeric_limits<T>::epsilon()));
}

TYPED_TEST(rotary, columns_beside_the_heads_stay_as_they_are) {
    using T = TypeParam;
    const RotaryTable<T> table(Runs::range(1, 2), 4);
    RowMatrix<T> x = some_heads(2, 12).cast<T>();
    const RowMatrix<T> before = x;
    reigen::rotary<T>(reigen::strided(x).block(0, 4, 2, 4), table, Rotation::forwards);
    EXPECT_EQ(x.leftCols(4), before.leftCols(4));
    EXPECT_NE(x.middleCols(4, 4), before.middleCols(4, 4));
    EXPECT_EQ(x.rightCols(4), before.rightCols(4));
}

TYPED_TEST(rotary, odd_heads_and_half_sequences_are_refused) {
    using T = TypeParam;
    EXPECT_THROW(RotaryTable<T>(Runs::range(0, 3), 5), reigen::ArgumentError);
    const RotaryTable<T> table(Runs::range(0, 3), 4);
    RowMatrix<T> x = some_heads(4, 8).cast<T>(), narrow = some_heads(3, 6).cast<T>();
    EXPECT_THROW(reigen::rotary<T>(reigen::strided(x), table, Rotation::forwards), reigen::ShapeError);
    EXPECT_THROW(reigen::rotary<T>(reigen::strided(narrow), table, Rotation::forwards), reigen::ShapeError);
}

TYPED_TEST(rotary, a_rank_without_tokens_or_heads_does_nothing) {
    using T = TypeParam;
    const RotaryTable<T> empty(Runs{}, 4);
    reigen::rotary<T>({nullptr, 0, 8, 8, 1}, empty, Rotation::forwards);
    const RotaryTable<T> table(Runs::range(0, 3), 4);
    reigen::rotary<T>({nullptr, 3, 0, 0, 1}, table, Rotation::forwards);
    EXPECT_EQ(table.tokens(), 3);
    EXPECT_EQ(empty.tokens(), 0);
}

} // namespace rotary_test
