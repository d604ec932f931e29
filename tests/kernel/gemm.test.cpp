#include <reigen/kernel/gemm.hpp>

#include "kernel/gemm_cases.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gemm_test {

using reigen::Accumulator;
using reigen::bfloat16;
using reigen::gemm;
using reigen::Index;
using reigen::Strided;

template <class T>
class gemm_of : public testing::Test {};
using Scalars = testing::Types<float, double, bfloat16>;
TYPED_TEST_SUITE(gemm_of, Scalars);

const float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// C = 2 A B + 3 C on small integers, with every byte of C's memory compared: the gaps must not change.
template <class T>
void expect_exact(Index m, Index n, Index k, Storage of_a, Storage of_b, Storage of_c) {
    Numbers numbers{unsigned(m + 31 * n + 997 * k)};
    Stored<T> a(m, k, of_a), b(k, n, of_b), c(m, n, of_c);
    numbers.small_integers(a.view());
    numbers.small_integers(b.view());
    numbers.small_integers(c.view());
    Stored<T> want = c;
    for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) {
            T& element = want.view()(i, j);
            element = T(float(2 * product_element(a.view(), b.view(), i, j).value + 3 * double(element)));
        }
    gemm(2, a.view(), b.view(), 3, c.view());
    EXPECT_EQ(c.memory, want.memory) << m << 'x' << n << 'x' << k << ", storages " << int(of_a) << int(of_b)
                                     << int(of_c);
}

TYPED_TEST(gemm_of, small_integers_is_exact_in_every_storage) {
    for (Storage of_a : all_storages)
        for (Storage of_b : all_storages)
            for (Storage of_c : all_storages) {
                expect_exact<TypeParam>(5, 67, 9, of_a, of_b, of_c);
                expect_exact<TypeParam>(37, 19, 33, of_a, of_b, of_c);
            }
}

TYPED_TEST(gemm_of, small_integers_is_exact_in_every_shape) {
    for (Index m : {1, 2, 3, 7, 8, 9, 15, 16, 17, 65})
        for (Index n : {1, 3, 8, 15, 16, 17, 33, 63, 80})
            for (Index k : {1, 2, 15, 40})
                expect_exact<TypeParam>(m, n, k, Storage::rows, Storage::rows, Storage::rows);
}

TYPED_TEST(gemm_of, several_blocks_of_every_side_is_exact) {
    expect_exact<TypeParam>(130, 40, 1000, Storage::columns, Storage::rows, Storage::rows);
    expect_exact<TypeParam>(9, 900, 800, Storage::rows, Storage::columns, Storage::every_second_row);
    expect_exact<TypeParam>(1500, 35, 20, Storage::rows, Storage::rows, Storage::rows);
}

TYPED_TEST(gemm_of, random_numbers_errs_by_no_more_than_its_roundings) {
    const double rounding = sizeof(TypeParam) == 8 ? 0x1p-53 : 0x1p-24;
    const double last_rounding = sizeof(TypeParam) == 2 ? 0x1p-8 : 0;
    for (Index k : {7, 300, 1000}) {
        Numbers numbers{unsigned(k)};
        Stored<TypeParam> a(21, k, Storage::rows), b(k, 50, Storage::columns), c(21, 50, Storage::rows);
        numbers.uniform(a.view());
        numbers.uniform(b.view());
        gemm(1, a.view(), b.view(), 0, c.view());
        double worst = 0;
        for (Index i = 0; i < 21; ++i)
            for (Index j = 0; j < 50; ++j) {
                const Element want = product_element(a.view(), b.view(), i, j);
                const double allowed =
                    double(k) * rounding * want.magnitude + last_rounding * std::abs(want.value) * (1 + 1e-3);
                worst = std::max(worst, std::abs(double(c.view()(i, j)) - want.value) / allowed);
            }
        EXPECT_LE(worst, 1) << "of what k roundings may do, k = " << k;
    }
}

TYPED_TEST(gemm_of, empty_sides_is_empty) {
    for (Index m : {0, 3})
        for (Index n : {0, 3})
            expect_exact<TypeParam>(m, n, 5, Storage::rows, Storage::rows, Storage::rows);
}

TYPED_TEST(gemm_of, no_terms_scales_c) {
    expect_exact<TypeParam>(4, 20, 0, Storage::rows, Storage::rows, Storage::columns);
    TypeParam c = TypeParam(5.f);
    gemm(1, Strided<TypeParam>{nullptr, 1, 0}, Strided<TypeParam>{nullptr, 0, 1}, 2, Strided<TypeParam>{&c, 1, 1});
    EXPECT_EQ(float(c), 10);
}

TYPED_TEST(gemm_of, c_is_not_read_where_beta_is_zero) {
    for (Storage of_c : all_storages)
        for (Index n : {3, 16, 48}) {
            Stored<TypeParam> a(11, 5, Storage::rows, TypeParam(1.f)), b(5, n, Storage::rows, TypeParam(2.f));
            Stored<TypeParam> c(11, n, of_c, TypeParam(not_a_number));
            gemm(1, a.view(), b.view(), 0, c.view());
            for (Index i = 0; i < 11; ++i)
                for (Index j = 0; j < n; ++j)
                    EXPECT_EQ(float(c.view()(i, j)), 10);
        }
}

TYPED_TEST(gemm_of, factors_are_not_read_where_alpha_is_zero) {
    Stored<TypeParam> a(2, 3, Storage::rows, TypeParam(not_a_number)), b(3, 2, Storage::rows, TypeParam(not_a_number));
    Stored<TypeParam> c(2, 2, Storage::rows, TypeParam(5.f));
    gemm(0, a.view(), b.view(), 1, c.view());
    EXPECT_EQ(float(c.view()(1, 1)), 5);
    gemm(0, a.view(), b.view(), 3, c.view());
    EXPECT_EQ(float(c.view()(1, 1)), 15);
    c = Stored<TypeParam>(2, 2, Storage::rows, TypeParam(not_a_number));
    gemm(0, a.view(), b.view(), 0, c.view());
    EXPECT_EQ(float(c.view()(1, 1)), 0);
}

TYPED_TEST(gemm_of, shapes_that_do_not_fit_is_an_error_that_says_all_three) {
    Stored<TypeParam> a(4, 12, Storage::rows), b(10, 8, Storage::rows), c(4, 8, Storage::rows);
    try {
        gemm(1, a.view(), b.view(), 0, c.view());
        FAIL() << "no error";
    } catch (const reigen::ShapeError& error) {
        EXPECT_STREQ(error.what(), "gemm: a is 4x12, b is 10x8, c is 4x8");
    }
}

TYPED_TEST(gemm_of, a_second_product_of_one_size_allocates_nothing) {
    Stored<TypeParam> a(70, 500, Storage::columns, TypeParam(1.f)), b(500, 90, Storage::columns, TypeParam(1.f));
    Stored<TypeParam> c(70, 90, Storage::rows);
    gemm(1, a.view(), b.view(), 0, c.view());
    const Index before = reigen::memory_account()->allocations();
    gemm(1, a.view(), b.view(), 0, c.view());
    EXPECT_EQ(reigen::memory_account()->allocations(), before);
    EXPECT_GT(reigen::memory_account()->of(reigen::MemoryUse::workspace).current, 0);
}

TEST(gemm, alpha_and_beta_apply_once) { // COSMA#20, DLA-Future#1022
    const float a[] = {1, 2}, b[] = {3, 4};
    float c = 5;
    const Strided<const float> row = {a, 1, 2, 2, 1}, column = {b, 2, 1, 1, 1};
    gemm(1, row, column, 1, Strided<float>{&c, 1, 1});
    EXPECT_EQ(c, 16);
    c = not_a_number;
    gemm(1, row, column, 0, Strided<float>{&c, 1, 1});
    EXPECT_EQ(c, 11);
}

TEST(gemm, alpha_and_beta_apply_once_over_several_k_blocks) {
    const Index k = 3 * reigen::gemm_k_block<float>;
    Stored<float> a(1, k, Storage::rows, 1), b(k, 1, Storage::rows, 2);
    float c = 7;
    gemm(3, a.view(), b.view(), 5, Strided<float>{&c, 1, 1});
    EXPECT_EQ(c, float(6 * k + 35));
}

TEST(gemm, bfloat16_is_summed_in_float_and_rounded_once) { // TransformerEngine#1761
    const bfloat16 x[] = {bfloat16(256.f), bfloat16(1.f), bfloat16(1.f), bfloat16(1.f)};
    Stored<bfloat16> ones(4, 1, Storage::rows, bfloat16(1.f));
    float wide = 0;
    bfloat16 narrow(0.f);
    const Strided<const bfloat16> row = {x, 1, 4, 4, 1};
    gemm(1, row, ones.view(), 0, Strided<float>{&wide, 1, 1});
    gemm(1, row, ones.view(), 0, Strided<bfloat16>{&narrow, 1, 1});
    EXPECT_EQ(wide, 259);
    EXPECT_EQ(float(narrow), 260);
}

TEST(gemm, bfloat16_is_not_rounded_between_k_blocks) {
    const Index block = reigen::gemm_k_block<bfloat16>, k = 4 * block;
    Stored<bfloat16> x(1, k, Storage::rows, bfloat16(0.f)), ones(k, 20, Storage::columns, bfloat16(1.f));
    Stored<bfloat16> c(1, 20, Storage::rows, bfloat16(0.f));
    for (Index i = 0; i < 4; ++i)
        x.view()(0, i * block) = bfloat16(i == 0 ? 256.f : 1.f);
    gemm(1, x.view(), ones.view(), 0, c.view());
    for (Index j = 0; j < 20; ++j)
        EXPECT_EQ(float(c.view()(0, j)), 260);
}

TEST(gemm, a_large_bfloat16_product_with_a_float_result_is_exact) {
    Numbers numbers{5};
    Stored<bfloat16> a(33, 500, Storage::columns), b(500, 70, Storage::rows);
    Stored<float> c(33, 70, Storage::columns);
    numbers.small_integers(a.view());
    numbers.small_integers(b.view());
    gemm(1, a.view(), b.view(), 0, c.view());
    for (Index i = 0; i < 33; ++i)
        for (Index j = 0; j < 70; ++j)
            EXPECT_EQ(double(c.view()(i, j)), product_element(a.view(), b.view(), i, j).value);
}

TEST(gemm, not_a_number_in_a_factor_reaches_its_row_or_column_alone) {
    Stored<float> a(9, 4, Storage::rows, 1), b(4, 37, Storage::rows, 1), c(9, 37, Storage::rows);
    a.view()(3, 2) = not_a_number;
    b.view()(1, 36) = not_a_number;
    gemm(1, a.view(), b.view(), 0, c.view());
    for (Index i = 0; i < 9; ++i)
        for (Index j = 0; j < 37; ++j)
            EXPECT_EQ(std::isnan(c.view()(i, j)), i == 3 || j == 36) << i << ' ' << j;
}

TEST(gemm, messages_may_move_while_it_computes) {
    int calls = 0;
    const auto count = [](void* counter) noexcept { ++*static_cast<int*>(counter); };
    const reigen::PollHook before = reigen::exchange_poll_hook({count, &calls});
    Stored<float> a(256, 600, Storage::rows, 1), b(600, 600, Storage::rows, 1), c(256, 600, Storage::rows);
    gemm(1, a.view(), b.view(), 0, c.view());
    reigen::exchange_poll_hook(before);
    EXPECT_GE(calls, 5);
    EXPECT_LE(calls, 200);
}

} // namespace gemm_test
