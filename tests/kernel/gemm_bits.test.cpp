#include <reigen/kernel/gemm.hpp>

#include "kernel/gemm_cases.hpp"
#include "support/bits.hpp"

#include <gtest/gtest.h>

namespace gemm_bits_test {

using reigen::Accumulator;
using reigen::bfloat16;
using reigen::gemm;
using reigen::Index;
using reigen::Strided;

/// Random factors and C, with sizes that leave a remainder in every tile and several k-blocks.
template <class T>
struct Factors {
    Stored<T> a, b, c;

    Factors(Index m, Index n, Index k, Storage of_a, Storage of_b)
        : a(m, k, of_a), b(k, n, of_b), c(m, n, Storage::rows) {
        Numbers numbers{unsigned(m + n + k)};
        numbers.uniform(a.view());
        numbers.uniform(b.view());
        numbers.uniform(c.view());
    }

    Stored<T> whole() {
        Stored<T> result = c;
        gemm(alpha, a.view(), b.view(), beta, result.view());
        return result;
    }

    /// The block of C computed alone, into memory of its own.
    void expect_block_is_bitwise_that_of(Stored<T>& all, Index row, Index column, Index rows, Index columns,
                                         Storage storage) {
        Stored<T> part(rows, columns, storage);
        const Strided<T> view = part.view();
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < columns; ++j)
                view(i, j) = c.view()(row + i, column + j);
        gemm(alpha, a.view().block(row, 0, rows, a.cols), b.view().block(0, column, b.rows, columns), beta, view);
        EXPECT_TRUE(same_bits(view, all.view().block(row, column, rows, columns)))
            << "rows " << row << " + " << rows << ", columns " << column << " + " << columns << ", storage "
            << int(storage) << ", k " << a.cols;
    }

    static constexpr Accumulator<T> alpha = Accumulator<T>(0.7);
    static constexpr Accumulator<T> beta = Accumulator<T>(0.3);
};

template <class T>
class bits_of_gemm : public testing::Test {};
using Scalars = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(bits_of_gemm, Scalars);

TYPED_TEST(bits_of_gemm, row_slices_are_those_of_the_whole) {
    for (Index k : {3, 100, 1000}) {
        Factors<TypeParam> factors(70, 67, k, Storage::rows, Storage::rows);
        Stored<TypeParam> all = factors.whole();
        for (Index rows : {1, 2, 3, 5, 6, 7, 8, 9, 16, 17, 40})
            for (Index row : {Index(0), Index(1), 70 - rows})
                factors.expect_block_is_bitwise_that_of(all, row, 0, rows, 67, Storage::rows);
    }
}

TYPED_TEST(bits_of_gemm, column_slices_are_those_of_the_whole) {
    for (Index k : {3, 100, 1000}) {
        Factors<TypeParam> factors(20, 150, k, Storage::rows, Storage::columns);
        Stored<TypeParam> all = factors.whole();
        for (Index columns : {1, 2, 3, 4, 8, 15, 16, 17, 31, 33, 48, 49, 100})
            for (Index column : {Index(0), Index(5), 150 - columns})
                factors.expect_block_is_bitwise_that_of(all, 0, column, 20, columns, Storage::rows);
    }
}

TYPED_TEST(bits_of_gemm, any_block_in_any_storage_is_that_of_the_whole) {
    Numbers numbers{3};
    for (Storage of_a : {Storage::rows, Storage::columns})
        for (Storage of_b : {Storage::rows, Storage::columns}) {
            Factors<TypeParam> factors(90, 110, 800, of_a, of_b);
            Stored<TypeParam> all = factors.whole();
            for (int trial = 0; trial < 20; ++trial) {
                const Index row = numbers.below(90), column = numbers.below(110);
                const Index rows = 1 + numbers.below(90 - row), columns = 1 + numbers.below(110 - column);
                factors.expect_block_is_bitwise_that_of(all, row, column, rows, columns,
                                                        all_storages[numbers.below(5)]);
            }
        }
}

TYPED_TEST(bits_of_gemm, the_storage_of_the_factors_does_not_matter) {
    Factors<TypeParam> factors(45, 70, 500, Storage::rows, Storage::rows);
    Stored<TypeParam> all = factors.whole();
    for (Storage of_a : all_storages)
        for (Storage of_b : all_storages) {
            Factors<TypeParam> same(45, 70, 500, of_a, of_b);
            EXPECT_TRUE(same_bits(same.whole().memory, all.memory));
        }
}

TYPED_TEST(bits_of_gemm, a_sum_over_whole_k_blocks_is_that_of_the_uncut_product) {
    using T = Accumulator<TypeParam>;
    const Index block = reigen::gemm_k_block<TypeParam>, k = 2 * block + 30;
    Factors<TypeParam> factors(30, 40, k, Storage::rows, Storage::rows);
    Stored<T> whole(30, 40, Storage::rows), parts(30, 40, Storage::rows);
    gemm(1, factors.a.view(), factors.b.view(), 0, whole.view());
    for (Index from = 0; from < k; from += block) {
        const Index depth = std::min(block, k - from);
        gemm(1, factors.a.view().block(0, from, 30, depth), factors.b.view().block(from, 0, depth, 40),
             from == 0 ? T(0) : T(1), parts.view());
    }
    EXPECT_TRUE(same_bits(whole.memory, parts.memory));
}

} // namespace gemm_bits_test
