#include "families.hpp"
#include "gemm_row.hpp"
#include "support/comparison.hpp"
#include "support/type_name.hpp"

#include <reigen/kernel/gemm.hpp>

#include <string>

namespace {

/// Squares, one layer's forward products, and few rows or columns.
const GemmShape shapes[] = {{128, 128, 128},    {256, 256, 256},   {512, 512, 512},   {1024, 1024, 1024},
                            {2048, 2048, 2048}, {512, 1024, 4096}, {512, 4096, 1024}, {2048, 256, 1024},
                            {16, 4096, 1024},   {4096, 16, 1024}};

/// So few rows that reading the weights takes all the time.
const GemmShape streaming_shapes[] = {{1, 4096, 4096}, {4, 4096, 4096}, {8, 4096, 4096}};

/// X^T dY (few rows and columns, long k) and dY W^T.
const GemmShape transposed_shapes[] = {{512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {1024, 256, 2048},
                                       {256, 256, 8192}, {1024, 4096, 512},  {512, 1024, 4096},  {2048, 1024, 256}};

template <class T>
peers::Multiplication multiplication(const peers::Product<T>& product) {
    return [=] { reigen::gemm(1, product.a, product.b, 0, product.c); };
}

template <class T>
void register_shape(const std::string& kernel, const GemmShape& shape) {
    bench::register_row(kernel + '/' + bench::name_of<T> + shape.sizes(),
                        [=] { return gemm_row<T>(shape, multiplication<T>); });
}

} // namespace

void register_gemm() {
    for (const GemmShape& shape : shapes)
        register_shape<float>("gemm", shape);
    for (const GemmShape& shape : streaming_shapes)
        register_shape<float>("gemm", shape.streaming());
    for (const GemmShape& shape : transposed_shapes)
        register_shape<float>("gemm_transposed_a", shape.with(Transposed::a));
    for (const GemmShape& shape : transposed_shapes)
        register_shape<float>("gemm_transposed_b", shape.with(Transposed::b));
    for (const GemmShape& shape : {GemmShape{512, 512, 512}, GemmShape{1024, 1024, 1024}, GemmShape{2048, 2048, 2048}})
        register_shape<double>("gemm", shape);
    for (const GemmShape& shape : {GemmShape{512, 512, 512}, GemmShape{1024, 1024, 1024}})
        register_shape<reigen::bfloat16>("gemm", shape);
}
