#include "part.hpp"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

// Two files for different instruction sets in one program: each keeps its own kernels, and matrices made by one are
// worked on by the other.

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
    if (!holds) {
        std::printf("not so: %s\n", what);
        ++failures;
    }
}

constexpr long m = 37, k = 300, n = 53;

void expect_product(const Part& maker, const Part& worker) {
    const float* const a = maker.make(m, k, 1);
    const float* const b = maker.make(k, n, 2);
    std::vector<float> c(std::size_t(m * n), -1);
    worker.multiply(m, k, n, a, b, c.data());
    bool equal = true;
    for (long i = 0; i < m; ++i)
        for (long j = 0; j < n; ++j) {
            double sum = 0;
            for (long l = 0; l < k; ++l)
                sum += double(a[i * k + l]) * double(b[l * n + j]);
            equal = equal && double(c[std::size_t(i * n + j)]) == sum;
        }
    expect(equal, "a product of the other part's matrices is exact");
}

std::vector<float> attended(const Part& maker, const Part& worker) {
    constexpr long tokens = 41, d = 24;
    std::vector<float> out(std::size_t(tokens * d), -1);
    worker.attend(tokens, d, maker.make(tokens, d, 1), maker.make(tokens, d, 2), maker.make(tokens, d, 3), out.data());
    return out;
}

} // namespace

int main() {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        std::puts("this machine has no AVX2 to run the second part with");
        return 77;
    }
    const Part& baseline = part_for_the_baseline;
    const Part& avx2 = part_for_avx2;
    expect(baseline.instruction_set() == "sse2", "the first part is built for SSE2");
    expect(avx2.instruction_set() == "avx2_fma", "the second part is built for AVX2");
    expect_product(baseline, avx2);
    expect_product(avx2, baseline);
    const auto by_baseline = attended(avx2, baseline), by_avx2 = attended(baseline, avx2);
    bool near = true;
    for (std::size_t i = 0; i < by_avx2.size(); ++i)
        near = near && std::abs(by_baseline[i] - by_avx2[i]) <= 1e-5f;
    expect(near, "both parts attend to the same numbers alike");
    std::puts(failures == 0 ? "two instruction sets in one program: well"
                            : "two instruction sets in one program: NOT well");
    return failures == 0 ? 0 : 1;
}
