#include "families.hpp"
#include "support/comparison.hpp"

#include <reigen/core/random.hpp>
#include <reigen/kernel/gemm.hpp>

#include <string>

using reigen::Accumulator;
using reigen::Index;
using reigen::RowMatrix;
using reigen::strided;

namespace {

struct Shape {
    Index m, n, k;
};

enum class Transposed { none, a, b };

/// Squares, one layer's forward products, and few rows or columns.
const Shape shapes[] = {{128, 128, 128},    {256, 256, 256},   {512, 512, 512},   {1024, 1024, 1024},
                        {2048, 2048, 2048}, {512, 1024, 4096}, {512, 4096, 1024}, {2048, 256, 1024},
                        {1, 4096, 1024},    {4, 4096, 1024},   {16, 4096, 1024},  {4096, 16, 1024}};

/// X^T dY (few rows and columns, long k) and dY W^T.
const Shape transposed_shapes[] = {{512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {1024, 256, 2048},
                                   {256, 256, 8192}, {1024, 4096, 512},  {512, 1024, 4096},  {2048, 1024, 256}};

template <class T>
RowMatrix<T> random_matrix(Index rows, Index cols, std::uint64_t stream) {
    const reigen::RandomStream random(1, stream);
    return RowMatrix<T>::NullaryExpr(rows, cols,
                                     [&](Index i, Index j) { return T(random.uniform(i * cols + j) - 0.5); });
}

/// C = A B by Eigen, in the type of the sums: its own bfloat16 products round after every multiply-add.
template <class T>
void multiply_with_eigen(const RowMatrix<T>& a, const RowMatrix<T>& b, Transposed transposed,
                         RowMatrix<Accumulator<T>>& c) {
    using Sum = Accumulator<T>;
    if (transposed == Transposed::a)
        c.noalias() = a.transpose().template cast<Sum>() * b.template cast<Sum>();
    else if (transposed == Transposed::b)
        c.noalias() = a.template cast<Sum>() * b.transpose().template cast<Sum>();
    else
        c.noalias() = a.template cast<Sum>() * b.template cast<Sum>();
}

template <class T>
void gemm(benchmark::State& state, Shape shape, Transposed transposed) {
    using Sum = Accumulator<T>;
    const auto [m, n, k] = shape;
    const bool of_a = transposed == Transposed::a, of_b = transposed == Transposed::b;
    const auto a = random_matrix<T>(of_a ? k : m, of_a ? m : k, 1);
    const auto b = random_matrix<T>(of_b ? n : k, of_b ? k : n, 2);
    RowMatrix<T> c(m, n);
    RowMatrix<Sum> eigen_c(m, n);
    const auto left = of_a ? strided(a).transpose() : strided(a);
    const auto right = of_b ? strided(b).transpose() : strided(b);
    bench::compare<Sum>(state, 2.0 * double(m) * double(n) * double(k),
                        [&] { reigen::gemm(1, left, right, 0, strided(c)); },
                        {{"vs_eigen", [&] { multiply_with_eigen(a, b, transposed, eigen_c); }}});
}

template <class T>
void register_shape(std::string name, Shape shape, Transposed transposed = Transposed::none) {
    for (Index side : {shape.m, shape.n, shape.k})
        name += '/' + std::to_string(side);
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { gemm<T>(state, shape, transposed); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
}

} // namespace

void register_gemm() {
    for (const Shape& shape : shapes)
        register_shape<float>("gemm/float", shape);
    for (const Shape& shape : transposed_shapes)
        register_shape<float>("gemm_transposed_a/float", shape, Transposed::a);
    for (const Shape& shape : transposed_shapes)
        register_shape<float>("gemm_transposed_b/float", shape, Transposed::b);
    for (const Shape& shape : {Shape{512, 512, 512}, Shape{1024, 1024, 1024}, Shape{2048, 2048, 2048}})
        register_shape<double>("gemm/double", shape);
    for (const Shape& shape : {Shape{512, 512, 512}, Shape{1024, 1024, 1024}})
        register_shape<reigen::bfloat16>("gemm/bfloat16", shape);
}
