#include <reigen/core/strided.hpp>

#include <gtest/gtest.h>

namespace strided_test {

using namespace reigen;

namespace {

template <class Matrix>
Matrix numbered(Index rows, Index cols) {
    return Matrix::NullaryExpr(rows, cols, [](Index i, Index j) { return double(10 * i + j); });
}

template <class Derived>
void expect_same_elements(const Strided<const double>& view, const Eigen::MatrixBase<Derived>& matrix) {
    ASSERT_EQ(view.rows, matrix.rows());
    ASSERT_EQ(view.cols, matrix.cols());
    for (Index i = 0; i < view.rows; ++i)
        for (Index j = 0; j < view.cols; ++j)
            EXPECT_EQ(view(i, j), matrix(i, j)) << i << ',' << j;
}

} // namespace

TEST(strided, sees_the_elements_of_every_kind_of_eigen_matrix) {
    const Eigen::MatrixXd columns = numbered<Eigen::MatrixXd>(5, 7);
    const RowMatrix<double> rows = numbered<RowMatrix<double>>(5, 7);
    expect_same_elements(strided(columns), columns);
    expect_same_elements(strided(rows), rows);
    expect_same_elements(strided(columns.transpose()), columns.transpose());
    expect_same_elements(strided(rows.block(1, 2, 3, 4)), rows.block(1, 2, 3, 4));
    expect_same_elements(strided(columns.block(1, 2, 3, 4).transpose()), columns.block(1, 2, 3, 4).transpose());
    expect_same_elements(strided(columns.row(2)), columns.row(2));
    expect_same_elements(strided(rows.col(3)), rows.col(3));
    using Steps = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
    const Eigen::Map<const Eigen::MatrixXd, 0, Steps> every_second(columns.data(), 3, 2, Steps(10, 2));
    expect_same_elements(strided(every_second), every_second);
}

TEST(strided, writes_where_the_matrix_is) {
    Eigen::MatrixXd matrix = numbered<Eigen::MatrixXd>(4, 4);
    auto block = matrix.block(1, 1, 2, 2);
    strided(block)(1, 0) = -1;
    EXPECT_EQ(matrix(2, 1), -1);
    strided(matrix).transpose()(3, 0) = -2;
    EXPECT_EQ(matrix(0, 3), -2);
}

TEST(strided, blocks_and_maps_compose) {
    const RowMatrix<double> matrix = numbered<RowMatrix<double>>(6, 6);
    const auto view = strided(matrix).block(1, 2, 4, 3);
    expect_same_elements(view.transpose(), matrix.block(1, 2, 4, 3).transpose());
    EXPECT_EQ(view.map(), matrix.block(1, 2, 4, 3));
}

TEST(strided, contiguity_is_of_the_rows) {
    const RowMatrix<double> matrix = numbered<RowMatrix<double>>(6, 6);
    EXPECT_TRUE(strided(matrix).is_contiguous());
    EXPECT_TRUE(strided(matrix.middleRows(2, 3)).is_contiguous());
    EXPECT_TRUE(strided(matrix.row(2)).is_contiguous());
    EXPECT_FALSE(strided(matrix.middleCols(2, 3)).is_contiguous());
    EXPECT_FALSE(strided(matrix.transpose()).is_contiguous());
}

} // namespace strided_test
