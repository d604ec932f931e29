#include <reigen/comm/matrix.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

namespace matrix_test {

namespace {

using ColMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
using RowMatrix = reigen::RowMatrix<float>;

template <class Matrix>
Matrix numbered(Index rows, Index cols, int rank) {
    return Matrix::NullaryExpr(rows, cols, [&](Index i, Index j) { return float(100 * rank + 10 * i + j); });
}

template <class Matrix>
Matrix sum_of_numbered(Index rows, Index cols, int ranks) {
    Matrix sum = numbered<Matrix>(rows, cols, 0);
    for (int r = 1; r < ranks; ++r)
        sum += numbered<Matrix>(rows, cols, r);
    return sum;
}

} // namespace

// Megatron#5337, pytorch#130251
TEST(matrix, rows_of_a_column_major_matrix_are_reduced_and_nothing_beside_them) {
    on_every_backend([](const Communicator& world) {
        ColMatrix whole = ColMatrix::Constant(4, 4, -9);
        whole.middleRows(1, 2).setConstant(float(world.rank() + 1));
        all_reduce(world, whole.middleRows(1, 2));
        ColMatrix want = ColMatrix::Constant(4, 4, -9);
        want.middleRows(1, 2).setConstant(float(world.size() * (world.size() + 1) / 2));
        EXPECT_EQ(whole, want);
    });
}

TEST(matrix, transposes_blocks_and_maps_of_either_order_are_reduced_in_place) {
    on_every_backend([](const Communicator& world) {
        const auto expect_sums = [&](auto whole, auto view_of) {
            using Matrix = decltype(whole);
            whole = Matrix::Constant(7, 6, -9);
            view_of(whole) = numbered<ColMatrix>(view_of(whole).rows(), view_of(whole).cols(), world.rank());
            all_reduce(world, view_of(whole));
            Matrix want = Matrix::Constant(7, 6, -9);
            view_of(want) = sum_of_numbered<ColMatrix>(view_of(want).rows(), view_of(want).cols(), world.size());
            EXPECT_EQ(whole, want);
        };
        const auto all = [](auto& m) { return m.block(0, 0, 7, 6); };
        const auto transposed = [](auto& m) { return m.transpose(); };
        const auto block = [](auto& m) { return m.block(1, 2, 3, 4); };
        const auto transposed_block = [](auto& m) { return m.block(1, 2, 4, 3).transpose(); };
        const auto every_other_row = [](auto& m) {
            using Stride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
            return Eigen::Map<RowMatrix, 0, Stride>(m.data(), 3, 6, Stride(2 * 6, 1));
        };
        expect_sums(ColMatrix(), all);
        expect_sums(RowMatrix(), all);
        expect_sums(ColMatrix(), transposed);
        expect_sums(RowMatrix(), transposed);
        expect_sums(ColMatrix(), block);
        expect_sums(RowMatrix(), block);
        expect_sums(ColMatrix(), transposed_block);
        expect_sums(RowMatrix(), transposed_block);
        expect_sums(RowMatrix(), every_other_row);
    });
}

TEST(matrix, what_lies_in_one_piece_in_either_storage_order_is_not_packed) {
    on_every_backend([](const Communicator& world) {
        const auto packed_bytes = [&](auto&& matrix) {
            reigen::memory_account()->reset_peaks();
            const auto held = [] { return reigen::memory_account()->of(reigen::MemoryUse::messages); };
            const reigen::Index before = held().current; // an earlier test may have left something in flight
            broadcast(world, matrix, 0);
            return held().peak - before;
        };
        ColMatrix columns = ColMatrix::Ones(5, 4);
        RowMatrix rows = RowMatrix::Ones(5, 4);
        EXPECT_EQ(packed_bytes(columns), 0);
        EXPECT_EQ(packed_bytes(columns.transpose()), 0);
        EXPECT_EQ(packed_bytes(columns.middleCols(1, 2)), 0);
        EXPECT_EQ(packed_bytes(rows), 0);
        EXPECT_EQ(packed_bytes(rows.transpose()), 0);
        EXPECT_EQ(packed_bytes(rows.middleRows(1, 2)), 0);
        EXPECT_EQ(packed_bytes(rows.middleCols(1, 2)), 40);
    });
}

TEST(matrix, messages_between_storage_orders_keep_rows_and_columns) {
    on_world(2, [](const Communicator& world) {
        if (world.rank() == 0) {
            send(world, numbered<ColMatrix>(5, 5, 3), 1);
            send(world, numbered<RowMatrix>(4, 6, 3).block(1, 1, 2, 3), 1);
        } else {
            RowMatrix square(5, 5);
            receive(world, square, 0);
            EXPECT_EQ(square, numbered<RowMatrix>(5, 5, 3));
            ColMatrix whole = ColMatrix::Zero(4, 4);
            receive(world, whole.bottomRightCorner(3, 2).transpose(), 0);
            ColMatrix want = ColMatrix::Zero(4, 4);
            want.bottomRightCorner(3, 2) = numbered<ColMatrix>(4, 6, 3).block(1, 1, 2, 3).transpose();
            EXPECT_EQ(whole, want);
        }
    });
}

TEST(matrix, broadcast_fills_the_block_of_every_rank) {
    on_every_backend([](const Communicator& world) {
        const int root = world.size() / 2;
        ColMatrix whole = ColMatrix::Constant(5, 5, -9);
        whole.block(1, 1, 2, 3) = numbered<ColMatrix>(2, 3, world.rank());
        broadcast(world, whole.block(1, 1, 2, 3), root);
        ColMatrix want = ColMatrix::Constant(5, 5, -9);
        want.block(1, 1, 2, 3) = numbered<ColMatrix>(2, 3, root);
        EXPECT_EQ(whole, want);
    });
}

// AiDotNet.Tensors#266, pytorch#153595
TEST(matrix, gathering_rows_or_columns_restores_the_whole_in_both_storage_orders) {
    on_every_backend([](const Communicator& world) {
        const auto restore = [&](auto whole, Index rows, Index cols) {
            using Matrix = decltype(whole);
            whole = numbered<Matrix>(rows, cols, 0);
            const auto row_parts = reigen::detail::balanced_parts(rows, world.size());
            const auto col_parts = reigen::detail::balanced_parts(cols, world.size());
            const auto self = std::size_t(world.rank());
            Matrix by_rows = Matrix::Zero(rows, cols);
            all_gather_rows(world, whole.middleRows(first_of(row_parts, world.rank()), row_parts[self]), by_rows,
                            row_parts);
            EXPECT_EQ(by_rows, whole);
            Matrix by_cols = Matrix::Zero(rows, cols);
            all_gather_cols(world, whole.middleCols(first_of(col_parts, world.rank()), col_parts[self]), by_cols,
                            col_parts);
            EXPECT_EQ(by_cols, whole);
        };
        for (const auto& [rows, cols] : {std::pair<Index, Index>{2, 4}, {3, 5}, {1, 1}}) {
            restore(ColMatrix(), rows, cols);
            restore(RowMatrix(), rows, cols);
        }
    });
}

TEST(matrix, scattered_sums_are_the_rows_or_columns_of_the_sum) {
    on_every_backend([](const Communicator& world) {
        const auto parts = uneven_parts(world.size());
        const auto self = std::size_t(world.rank());
        const Index first = first_of(parts, world.rank());
        ColMatrix rows = ColMatrix::Zero(parts[self], 3);
        reduce_scatter_rows(world, numbered<ColMatrix>(total(parts), 3, world.rank()), rows, Reduction::sum, parts);
        EXPECT_EQ(rows, sum_of_numbered<ColMatrix>(total(parts), 3, world.size()).middleRows(first, parts[self]));
        RowMatrix cols = RowMatrix::Zero(2, parts[self]);
        reduce_scatter_cols(world, numbered<RowMatrix>(2, total(parts), world.rank()), cols, Reduction::sum, parts);
        EXPECT_EQ(cols, sum_of_numbered<RowMatrix>(2, total(parts), world.size()).middleCols(first, parts[self]));
    });
}

TEST(matrix, shapes_that_do_not_fit_are_refused_with_both) {
    ColMatrix all(4, 3);
    const auto words = words_of<reigen::ShapeError>([&] { all_gather_rows(Communicator(), ColMatrix(4, 2), all); });
    EXPECT_EQ(words, "all_gather_rows: mine is 4x2, all is 4x3");
    EXPECT_THROW(reduce_scatter_rows(Communicator(), ColMatrix(4, 2), all), reigen::ShapeError);
}

} // namespace matrix_test
