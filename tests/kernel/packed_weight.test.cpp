#include <reigen/kernel/gemm.hpp>

#include "kernel/gemm_cases.hpp"
#include "support/bits.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace packed_weight_test {

using reigen::Accumulator;
using reigen::bfloat16;
using reigen::gemm;
using reigen::Index;
using reigen::PackedWeight;
using reigen::RowMatrix;
using reigen::Strided;
using reigen::strided;

template <class T>
class packed_weight_of : public testing::Test {};
using Scalars = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(packed_weight_of, Scalars);

/// C = 0.7 A B + 0.3 C, by the matrix and by what is packed of it, in the type Out.
template <class T, class Out>
void expect_same_bits(Index m, Index n, Index k, Storage of_a, Storage of_b, Storage of_c) {
    Numbers numbers{unsigned(m + 31 * n + 997 * k)};
    Stored<T> a(m, k, of_a), b(k, n, of_b);
    Stored<Out> c(m, n, of_c);
    numbers.uniform(a.view());
    numbers.uniform(b.view());
    numbers.uniform(c.view());
    Stored<Out> want = c;
    using Scale = Accumulator<T>;
    gemm(Scale(0.7), a.view(), b.view(), Scale(0.3), want.view());
    gemm(Scale(0.7), a.view(), PackedWeight<T>(b.view()), Scale(0.3), c.view());
    EXPECT_TRUE(same_bits(c.memory, want.memory))
        << m << 'x' << n << 'x' << k << ", storages " << int(of_a) << int(of_b) << int(of_c);
}

TYPED_TEST(packed_weight_of, the_bits_are_those_of_the_matrix) {
    using T = TypeParam;
    for (Index m = 1; m <= 20; ++m)
        for (Index n : {1, 7, 8, 16, 17, 31, 48, 65, 100})
            for (Index k : {1, 5, 40}) {
                expect_same_bits<T, T>(m, n, k, Storage::rows, Storage::rows, Storage::rows);
                expect_same_bits<T, Accumulator<T>>(m, n, k, Storage::rows, Storage::columns, Storage::rows);
            }
}

TYPED_TEST(packed_weight_of, the_bits_are_those_of_the_matrix_over_several_blocks) {
    using T = TypeParam;
    for (Index m : {1, 3, 9, 16, 17, 70})
        for (Index k : {384, 500, 1000})
            expect_same_bits<T, T>(m, 450, k, Storage::rows, Storage::rows, Storage::rows);
    expect_same_bits<T, T>(1100, 30, 40, Storage::rows, Storage::rows, Storage::rows);
}

TYPED_TEST(packed_weight_of, every_storage_is_taken) {
    using T = TypeParam;
    for (Storage of_a : all_storages)
        for (Storage of_b : all_storages)
            for (Storage of_c : all_storages)
                for (Index m : {5, 40})
                    expect_same_bits<T, T>(m, 37, 19, of_a, of_b, of_c);
}

TYPED_TEST(packed_weight_of, sides_may_be_empty) {
    using T = TypeParam;
    for (Index m : {0, 3})
        for (Index n : {0, 3})
            for (Index k : {0, 3})
                expect_same_bits<T, T>(m, n, k, Storage::rows, Storage::rows, Storage::rows);
}

TYPED_TEST(packed_weight_of, c_is_not_read_where_beta_is_zero) {
    using T = TypeParam;
    for (Index m : {1, 11, 40}) {
        Stored<T> a(m, 5, Storage::rows, T(1.f)), b(5, 33, Storage::rows, T(2.f));
        Stored<T> c(m, 33, Storage::rows, T(std::numeric_limits<float>::quiet_NaN()));
        gemm(1, a.view(), PackedWeight<T>(b.view()), 0, c.view());
        for (Index i = 0; i < m; ++i)
            for (Index j = 0; j < 33; ++j)
                EXPECT_EQ(float(c.view()(i, j)), 10);
    }
}

TYPED_TEST(packed_weight_of, what_was_packed_comes_back) {
    using T = TypeParam;
    for (Index n : {1, 16, 37}) {
        Stored<T> weight(21, n, Storage::rows), back(21, n, Storage::rows);
        Numbers{unsigned(n)}.uniform(weight.view());
        const PackedWeight<T> packed(weight.view());
        EXPECT_EQ(packed.rows(), 21);
        EXPECT_EQ(packed.cols(), n);
        packed.unpack(back.view());
        EXPECT_TRUE(same_bits(back.memory, weight.memory));
    }
}

TYPED_TEST(packed_weight_of, a_second_product_allocates_nothing) {
    using T = TypeParam;
    Stored<T> b(500, 90, Storage::rows, T(1.f));
    const PackedWeight<T> packed(b.view());
    for (Index m : {4, 70}) {
        Stored<T> a(m, 500, Storage::rows, T(1.f)), c(m, 90, Storage::rows);
        gemm(1, a.view(), packed, 0, c.view());
        const Index before = reigen::memory_account()->allocations();
        gemm(1, a.view(), packed, 0, c.view());
        EXPECT_EQ(reigen::memory_account()->allocations(), before);
    }
}

TEST(packed_weight, a_weight_that_is_given_away_is_freed) {
    RowMatrix<float> weight = RowMatrix<float>::Constant(3, 20, 2);
    const PackedWeight packed(std::move(weight));
    EXPECT_EQ(weight.size(), 0); // NOLINT(bugprone-use-after-move): what the move leaves is the promise
    const RowMatrix<float> x = RowMatrix<float>::Ones(2, 3);
    RowMatrix<float> y(2, 20);
    gemm(1.f, strided(x), packed, 0.f, strided(y));
    EXPECT_EQ(y, (RowMatrix<float>::Constant(2, 20, 6)));
}

TEST(packed_weight, its_memory_is_counted_as_weights) {
    const Index before = reigen::memory_account()->of(reigen::MemoryUse::weights).current;
    const RowMatrix<float> weight = RowMatrix<float>::Zero(10, 64);
    const PackedWeight<float> packed(strided(weight));
    EXPECT_EQ(reigen::memory_account()->of(reigen::MemoryUse::weights).current - before, 10 * 64 * 4);
}

template <class Call>
void expect_shape_error(const char* message, Call call) {
    try {
        call();
        FAIL() << "no error";
    } catch (const reigen::ShapeError& error) {
        EXPECT_STREQ(error.what(), message);
    }
}

TEST(packed_weight, shapes_that_do_not_fit_are_an_error) {
    const RowMatrix<float> weight = RowMatrix<float>::Zero(10, 8), x = RowMatrix<float>::Zero(4, 12);
    RowMatrix<float> y(4, 8);
    const PackedWeight<float> packed(strided(weight));
    expect_shape_error("gemm: a is 4x12, b is 10x8, c is 4x8", [&] { gemm(1.f, strided(x), packed, 0.f, strided(y)); });
    expect_shape_error("PackedWeight: 10x8 into 4x8", [&] { packed.unpack(strided(y)); });
    expect_shape_error("PackedWeight: a matrix of -1x2",
                       [] { PackedWeight<float>(Strided<const float>{nullptr, -1, 2, 2, 1}); });
    EXPECT_THROW(PackedWeight<float>(Strided<const float>{nullptr, 1, 2, 2, 1}), reigen::ArgumentError);
}

} // namespace packed_weight_test
