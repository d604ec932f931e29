#include "families.hpp"
#include "peers/eigen.hpp"
#include "peers/onednn.hpp"
#include "peers/openblas.hpp"
#include "peers/torch.hpp"
#include "table.hpp"

#include <reigen/core/instruction_set.hpp>

#include <benchmark/benchmark.h>

#include <exception>
#include <iostream>
#include <string>
#include <string_view>

namespace {

const char* const help = R"(kernels: how close the kernels come to what the processor can do, on one core.

Every row runs the kernel, its peers, and bursts of what the processor can do, in turns, on thread time. Speeds are
medians:
  gflops                 billions of multiplications and additions a second
  fraction_of_peak       of the multiply-add peak measured in the same turns: that of the row's type; without
                         instructions for bfloat16, float's
  fraction_of_bandwidth  of the fastest read from memory measured in the same turns, for rows that it bounds
  gigabytes_a_second     of B, or of keys and values, read from memory, for the same rows
  vs_eigen               our speed over Eigen's, compiled with the same flags
  vs_openblas            our speed over OpenBLAS's, if libopenblas.so.0 is installed
  vs_onednn              our speed over oneDNN's, if this program was built with it
  vs_torch               our speed over PyTorch's (mm, scaled_dot_product_attention), if --torch names a Python with it
                         (a peer more than ten times slower takes no turns: its first runs stand for all)
  error, error_eigen...  of each result: its largest difference from the one in double, over the largest exact value

Rows are named kernel/type/sizes, for instance gemm/float/512/1024/4096: C[512, 1024] = A[512, 4096] B[4096, 1024].
  gemm_transposed_a, gemm_transposed_b   A, or B, lies in memory as its transpose: X^T dY and dY W^T of a linear layer
  gemm_packed                            B is packed once, outside of what is timed; so are oneDNN's weights
  .../1/4096/4096 and other few rows     B is larger than the caches, or one of several copies that together are
  attention_forward, attention_backward  one head of N queries on N keys of head_dim d; with causal:1 only the pairs
                                         that see each other are counted
  decode                                 one query on many keys; heads:16on2 are 16 query heads on 2 key heads

  kernels --benchmark_filter=gemm/float                      some of them
  kernels --benchmark_min_time=0.01                          a short run
  kernels --benchmark_out=k.json --benchmark_out_format=json
  kernels --torch=PYTHON                                     with PyTorch, in a process of its own

)";

/// Takes --torch=PYTHON out of the command line; empty where it is not given.
std::string torch_option(int& argc, char** argv) {
    constexpr std::string_view option = "--torch=";
    std::string python;
    int kept = 1;
    for (int i = 1; i < argc; ++i)
        if (std::string_view(argv[i]).starts_with(option))
            python = argv[i] + option.size();
        else
            argv[kept++] = argv[i];
    argc = kept;
    return python;
}

void describe_peers() {
    benchmark::AddCustomContext("instruction_set", reigen::instruction_set);
    benchmark::AddCustomContext("eigen", peers::eigen::version());
    for (const auto& [name, version] :
         {std::pair("openblas", peers::openblas::version()), std::pair("onednn", peers::onednn::version()),
          std::pair("torch", peers::torch::version())})
        benchmark::AddCustomContext(name, version.empty() ? "not here" : version);
}

/// Our table, unless Google Benchmark was told what to print.
void run_benchmarks(bool as_table) {
    Table table;
    if (as_table)
        benchmark::RunSpecifiedBenchmarks(&table);
    else
        benchmark::RunSpecifiedBenchmarks();
}

} // namespace

int main(int argc, char** argv) {
    bool own_table = true;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help")
            std::cout << help << std::flush;
        own_table = own_table && !argument.starts_with("--benchmark_format") &&
                    !argument.starts_with("--benchmark_counters_tabular");
    }
    const std::string python = torch_option(argc, argv);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    try {
        if (!python.empty())
            peers::torch::start(python);
        describe_peers();
        register_peak();
        register_gemm();
        register_attention();
        register_decode();
        run_benchmarks(own_table);
    } catch (const std::exception& error) {
        std::cerr << "kernels: " << error.what() << '\n';
        return 1;
    }
    benchmark::Shutdown();
}
