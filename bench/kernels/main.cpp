#include "families.hpp"

#include <reigen/core/instruction_set.hpp>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include <iostream>
#include <string>
#include <string_view>

namespace {

const char* const help = R"(kernels: how close the kernels come to what the processor can do, on one core.

Every row runs the kernel, its peers and a burst of plain multiply-adds in turns, on thread time, and prints medians:
  gflops            billions of multiplications and additions a second
  fraction_of_peak  of the multiply-add peak measured in the same turns (float's for bfloat16, which is widened)
  vs_eigen          our speed over Eigen's, compiled with the same flags

Rows are named kernel/type/sizes, for instance gemm/float/512/1024/4096: C[512, 1024] = A[512, 4096] B[4096, 1024].
attention_forward and attention_backward take one head of N queries on N keys of head_dim d; with causal:1 only the
pairs that see each other are counted.
  kernels --benchmark_filter=gemm/float                      some of them
  kernels --benchmark_min_time=0.01                          a short run
  kernels --benchmark_out=k.json --benchmark_out_format=json

)";

std::string eigen_version() {
    return std::to_string(EIGEN_WORLD_VERSION) + '.' + std::to_string(EIGEN_MAJOR_VERSION) + '.' +
           std::to_string(EIGEN_MINOR_VERSION);
}

} // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]) == "--help")
            std::cout << help << std::flush;
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    benchmark::AddCustomContext("instruction_set", reigen::instruction_set);
    benchmark::AddCustomContext("eigen", eigen_version());
    register_peak();
    register_gemm();
    register_attention();
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
