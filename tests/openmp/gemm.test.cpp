#include <reigen/kernel/gemm.hpp>

#include "kernel/gemm_cases.hpp"
#include "support/bits.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <set>
#include <thread>

namespace gemm_on_threads_test {

using namespace reigen;

/// C = 0.7 A B + 0.3 C on so many threads, from the same random numbers every time.
template <class T>
std::vector<T> product_on(int threads, Index m, Index n, Index k, bool packed) {
    Numbers numbers{unsigned(m + n + k)};
    Stored<T> a(m, k, Storage::rows), b(k, n, Storage::rows), c(m, n, Storage::rows);
    numbers.uniform(a.view());
    numbers.uniform(b.view());
    numbers.uniform(c.view());
    using Scale = Accumulator<T>;
    omp_set_num_threads(threads);
    if (packed)
        gemm(Scale(0.7), a.view(), PackedWeight<T>(b.view()), Scale(0.3), c.view());
    else
        gemm(Scale(0.7), a.view(), b.view(), Scale(0.3), c.view());
    return c.memory;
}

template <class T>
void expect_same_bits_on_any_number_of_threads(Index m, Index n, Index k) {
    for (bool packed : {false, true}) {
        const std::vector<T> alone = product_on<T>(1, m, n, k, packed);
        for (int threads : {2, 3, 4, 7}) {
            const std::vector<T> together = product_on<T>(threads, m, n, k, packed);
            EXPECT_TRUE(same_bits(alone, together))
                << m << 'x' << n << 'x' << k << " on " << threads << " threads, packed " << packed;
        }
    }
}

TEST(gemm_on_threads, the_number_of_threads_changes_no_bit) {
    expect_same_bits_on_any_number_of_threads<float>(300, 400, 500);
    expect_same_bits_on_any_number_of_threads<float>(700, 20, 900);
    expect_same_bits_on_any_number_of_threads<float>(5, 3000, 700);
    expect_same_bits_on_any_number_of_threads<double>(130, 700, 300);
    expect_same_bits_on_any_number_of_threads<bfloat16>(200, 333, 400);
}

TEST(gemm_on_threads, the_bits_are_those_of_a_file_without_openmp) {
    // Sums of products of small integers are exact, so that any other program has the same.
    Numbers numbers{5};
    Stored<float> a(300, 200, Storage::rows), b(200, 300, Storage::columns), c(300, 300, Storage::columns);
    numbers.small_integers(a.view());
    numbers.small_integers(b.view());
    omp_set_num_threads(3);
    gemm(1, a.view(), b.view(), 0, c.view());
    for (Index i = 0; i < 300; i += 7)
        for (Index j = 0; j < 300; j += 5)
            EXPECT_EQ(double(c.view()(i, j)), product_element(a.view(), b.view(), i, j).value);
}

TEST(gemm_on_threads, the_work_is_on_several_threads_and_their_memory_in_the_callers_account) {
    omp_set_num_threads(2);
    EXPECT_EQ(detail::thread_count(), 2);
    std::set<std::thread::id> seen;
    std::set<MemoryAccount*> accounts;
    detail::for_each_part(2, [&](Index) {
#pragma omp critical
        {
            seen.insert(std::this_thread::get_id());
            accounts.insert(memory_account().get());
        }
    });
    EXPECT_EQ(seen.size(), 2u);
    EXPECT_EQ(accounts, std::set{memory_account().get()});
    EXPECT_STREQ(instruction_set + std::strlen(instruction_set) - 7, "_openmp");
}

TEST(gemm_on_threads, a_part_that_throws_ends_the_call_when_all_have_ended) {
    std::atomic<int> ended = 0;
    const auto throw_in_the_last = [&](Index part) {
        ++ended;
        require(part != 3, "part ", part, " fails");
    };
    try {
        detail::for_each_part(4, throw_in_the_last);
        FAIL() << "no error";
    } catch (const ArgumentError& error) {
        EXPECT_STREQ(error.what(), "part 3 fails");
    }
    EXPECT_EQ(ended, 4);
}

TEST(gemm_on_threads, inside_a_parallel_region_a_product_stays_on_its_thread) {
    omp_set_num_threads(2);
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        EXPECT_EQ(detail::thread_count(), 1);
    }
}

} // namespace gemm_on_threads_test
