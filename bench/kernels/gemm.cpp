#include "families.hpp"
#include "gemm_row.hpp"
#include "support/comparison.hpp"
#include "support/type_name.hpp"

#include <reigen/kernel/gemm.hpp>
#include <reigen/kernel/packed_weight.hpp>

#include <memory>
#include <span>
#include <string>

namespace {

/// Squares, one layer's forward products, and few rows or columns whose weights stay in a cache.
const GemmShape shapes[] = {{128, 128, 128},    {256, 256, 256},   {512, 512, 512},   {1024, 1024, 1024},
                            {2048, 2048, 2048}, {512, 1024, 4096}, {512, 4096, 1024}, {2048, 256, 1024},
                            {16, 4096, 1024},   {4096, 16, 1024}};

const GemmShape squares[] = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};

const GemmShape packed_shapes[] = {{512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048},
                                   {512, 1024, 4096}, {512, 4096, 1024},  {16, 4096, 1024}};

/// So few rows that reading the weights takes all the time.
const GemmShape few_rows[] = {{1, 4096, 4096, Transposed::none, true},
                              {4, 4096, 4096, Transposed::none, true},
                              {8, 4096, 4096, Transposed::none, true}};

/// X^T dY: few rows and columns, long k.
const GemmShape transposed_a[] = {{512, 512, 512, Transposed::a},    {1024, 1024, 1024, Transposed::a},
                                  {2048, 2048, 2048, Transposed::a}, {1024, 256, 2048, Transposed::a},
                                  {256, 256, 8192, Transposed::a},   {1024, 4096, 512, Transposed::a}};

/// dY W^T.
const GemmShape transposed_b[] = {{512, 512, 512, Transposed::b},    {1024, 1024, 1024, Transposed::b},
                                  {2048, 2048, 2048, Transposed::b}, {512, 1024, 4096, Transposed::b},
                                  {512, 4096, 1024, Transposed::b},  {2048, 1024, 256, Transposed::b}};

template <class T>
peers::Multiplication multiplication(const peers::Product<T>& product) {
    return [=] { reigen::gemm(1, product.a, product.b, 0, product.c); };
}

/// B packed outside of what is timed.
template <class T>
peers::Multiplication packed_multiplication(const peers::Product<T>& product) {
    const auto packed = std::make_shared<const reigen::PackedWeight<T>>(product.b);
    return [=] { reigen::gemm(1, product.a, *packed, 0, product.c); };
}

template <class T>
void register_gemm_rows(const std::string& kernel, std::span<const GemmShape> shapes_of_rows) {
    for (const GemmShape& shape : shapes_of_rows)
        bench::register_row(kernel + '/' + bench::name_of<T> + shape.sizes(),
                            [=] { return gemm_row<T>(shape, multiplication<T>); });
}

/// Against oneDNN with weights in an order of its own.
template <class T>
void register_packed_rows(std::span<const GemmShape> shapes_of_rows) {
    for (const GemmShape& shape : shapes_of_rows)
        bench::register_row(std::string("gemm_packed/") + bench::name_of<T> + shape.sizes(), [=] {
            return gemm_row<T>(shape, packed_multiplication<T>, peers::onednn::Weights::reordered);
        });
}

} // namespace

void register_gemm() {
    register_gemm_rows<float>("gemm", shapes);
    register_gemm_rows<float>("gemm", few_rows);
    register_gemm_rows<float>("gemm_transposed_a", transposed_a);
    register_gemm_rows<float>("gemm_transposed_b", transposed_b);
    register_packed_rows<float>(packed_shapes);
    register_packed_rows<float>(few_rows);
    register_gemm_rows<double>("gemm", squares);
    register_gemm_rows<reigen::bfloat16>("gemm", squares);
    register_packed_rows<reigen::bfloat16>(few_rows);
}
