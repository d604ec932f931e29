#include <reigen/kernel/gemm.hpp>
#include <reigen/kernel/packed_weight.hpp>

#include "kernel/gemm_cases.hpp"
#include "support/bits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

// Where files are compiled for AMX: every bit of a product of bfloat16 follows from the description of the processor's
// instruction, and from nothing else.

#if defined(REIGEN_AMX)

namespace gemm_amx_test {

using reigen::bfloat16;
using reigen::gemm;
using reigen::Index;
using reigen::PackedWeight;
using reigen::Strided;

/// The sum over k = [0, depth) of a(i, k) b(k, j) as TDPBF16PS takes it: 32 at a time, even and odd ones apart.
float sum_in_tiles(const Strided<bfloat16>& a, const Strided<bfloat16>& b, Index i, Index j) {
    float sum = 0;
    for (Index first = 0; first < a.cols; first += 32) {
        float of_parity[2] = {0, 0};
        for (Index k = first; k < std::min(first + 32, a.cols); ++k)
            of_parity[k % 2] = std::fma(float(a(i, k)), float(b(k, j)), of_parity[k % 2]);
        sum += of_parity[0] + of_parity[1];
    }
    return sum;
}

/// Sums of k-blocks, added in order.
void reference(const Strided<bfloat16>& a, const Strided<bfloat16>& b, const Strided<float>& c) {
    constexpr Index block = reigen::gemm_k_block<bfloat16>;
    for (Index i = 0; i < c.rows; ++i)
        for (Index j = 0; j < c.cols; ++j) {
            c(i, j) = 0;
            for (Index k = 0; k < a.cols; k += block) {
                const Index depth = std::min(block, a.cols - k);
                c(i, j) += sum_in_tiles(a.block(0, k, a.rows, depth), b.block(k, 0, depth, b.cols), i, j);
            }
        }
}

constexpr Index depths[] = {1, 2, 15, 16, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 1100};

TEST(gemm_amx, every_bit_is_that_of_the_instruction) {
    Numbers numbers{21};
    for (Index k : depths)
        for (Index rows : {1, 2, 3, 4, 5, 16, 17, 40})
            for (Index cols : {1, 16, 33, 50}) {
                Stored<bfloat16> a(rows, k, Storage::rows), b(k, cols, Storage::rows);
                numbers.uniform(a.view());
                numbers.uniform(b.view());
                Stored<float> got(rows, cols, Storage::rows), want(rows, cols, Storage::rows);
                gemm(1.0F, a.view(), b.view(), 0.0F, got.view());
                reference(a.view(), b.view(), want.view());
                EXPECT_TRUE(same_bits(got.view(), want.view())) << rows << 'x' << k << 'x' << cols;
                const PackedWeight<bfloat16> packed(b.view());
                gemm(1.0F, a.view(), packed, 0.0F, got.view());
                EXPECT_TRUE(same_bits(got.view(), want.view())) << rows << 'x' << k << 'x' << cols << " packed";
            }
}

TEST(gemm_amx, what_an_earlier_product_left_behind_reaches_no_sum) {
    const bfloat16 infinity = std::numeric_limits<bfloat16>::infinity();
    Stored<bfloat16> infinite_a(40, 63, Storage::rows, infinity), infinite_b(63, 70, Storage::rows, infinity);
    Stored<float> all_infinite(40, 70, Storage::rows);
    Numbers numbers{22};
    for (Index k : {1, 5, 31, 33, 63}) {
        gemm(1.0F, infinite_a.view(), infinite_b.view(), 0.0F, all_infinite.view());
        Stored<bfloat16> a(20, k, Storage::rows), b(k, 40, Storage::rows);
        numbers.uniform(a.view());
        numbers.uniform(b.view());
        Stored<float> got(20, 40, Storage::rows), want(20, 40, Storage::rows);
        gemm(1.0F, a.view(), b.view(), 0.0F, got.view());
        reference(a.view(), b.view(), want.view());
        EXPECT_TRUE(same_bits(got.view(), want.view())) << k;
    }
}

TEST(gemm_amx, rows_of_a_packed_factor_that_are_not_multiplied_reach_no_sum) {
    Numbers numbers{23};
    Stored<bfloat16> b(96, 40, Storage::rows);
    numbers.uniform(b.view());
    for (Index k : {1, 30, 31, 32, 47}) {
        Stored<bfloat16> poisoned = b;
        for (Index row = k; row < 96; ++row)
            for (Index j = 0; j < 40; ++j)
                poisoned.view()(row, j) = std::numeric_limits<bfloat16>::quiet_NaN();
        const PackedWeight<bfloat16> packed(poisoned.view());
        Stored<bfloat16> a(20, k, Storage::rows);
        numbers.uniform(a.view());
        Stored<float> got(20, 40, Storage::rows), want(20, 40, Storage::rows);
        reigen::detail::gemm_checked<bfloat16>(1.0F, Strided<const bfloat16>(a.view()),
                                               packed.factor().block(0, 0, k, 40), 0.0F, got.view());
        reference(a.view(), b.view().block(0, 0, k, 40), want.view());
        EXPECT_TRUE(same_bits(got.view(), want.view())) << k;
    }
}

TEST(gemm_amx, sums_that_are_rounded_are_kept_until_the_last_k) {
    Numbers numbers{24};
    for (Index k : {1024, 1025, 2100, 3100}) {
        Stored<bfloat16> a(33, k, Storage::rows), b(k, 1050, Storage::rows);
        numbers.uniform(a.view());
        numbers.uniform(b.view());
        Stored<bfloat16> got(33, 1050, Storage::rows, bfloat16(1.0F));
        Stored<float> sums(33, 1050, Storage::rows, 1.0F);
        gemm(0.5F, a.view(), b.view(), 2.0F, got.view());
        gemm(0.5F, a.view(), b.view(), 2.0F, sums.view());
        for (Index i = 0; i < 33; ++i)
            for (Index j = 0; j < 1050; ++j)
                ASSERT_EQ(float(got.view()(i, j)), float(reigen::detail::round_to_bfloat16(sums.view()(i, j)))) << k;
    }
}

} // namespace gemm_amx_test

#endif
