#include "peers/onednn.hpp"

#if defined(REIGEN_BENCH_ONEDNN)

#include <reigen/core/buffer.hpp>

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "bench: this oneDNN does not take its threads from OpenMP, so it cannot be held to one"
#endif

namespace peers::onednn {
namespace {

using dnnl::memory;

/// Asks the OpenMP that oneDNN brought with it: this program is not compiled for OpenMP, which Eigen and our kernels
/// would use too.
void use_one_thread() {
    if (const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
        set(1);
}

const dnnl::engine& processor() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

template <class T>
constexpr memory::data_type type_of = memory::data_type::f32;
template <>
constexpr memory::data_type type_of<reigen::bfloat16> = memory::data_type::bf16;

template <class T>
memory::desc desc_of(const reigen::Strided<T>& x) {
    return {{x.rows, x.cols}, type_of<std::remove_const_t<T>>, {x.row_stride, x.col_stride}};
}

/// The memory of a view that is only read here, const or not.
template <class T>
memory memory_of(const reigen::Strided<T>& x) {
    return {desc_of(x), processor(), const_cast<void*>(static_cast<const void*>(x.data))};
}

dnnl::matmul::primitive_desc matmul_desc(const memory::desc& a, const memory::desc& b, const memory::desc& c) {
#if DNNL_VERSION_MAJOR >= 3
    return {processor(), a, b, c, dnnl::primitive_attr(), true};
#else
    return {dnnl::matmul::desc(a, b, c), dnnl::primitive_attr(), processor(), true};
#endif
}

/// In memory of the same kind as our packed weights.
memory reordered(memory from, const memory::desc& wanted, reigen::Buffer<std::byte>& room, dnnl::stream& stream) {
    room = reigen::Buffer<std::byte>(reigen::Index(wanted.get_size()));
    memory to(wanted, processor(), room.data());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return to;
}

template <class T>
Multiplication multiplication_of(const Product<T>& product, Weights weights) {
    use_one_thread();
    memory::desc b_desc = desc_of(product.b);
    if (weights == Weights::reordered)
        b_desc = {{product.b.rows, product.b.cols}, type_of<T>, memory::format_tag::any};
    const auto desc = matmul_desc(desc_of(product.a), b_desc, desc_of(product.c));
    if (!desc || std::string_view(desc.impl_info_str()).starts_with("ref"))
        return {};
    dnnl::stream stream(processor());
    const auto room = std::make_shared<reigen::Buffer<std::byte>>();
    const std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, memory_of(product.a)},
        {DNNL_ARG_WEIGHTS, weights == Weights::reordered
                               ? reordered(memory_of(product.b), desc.weights_desc(), *room, stream)
                               : memory_of(product.b)},
        {DNNL_ARG_DST, memory_of(product.c)}};
    return [primitive = dnnl::matmul(desc), stream, arguments, room]() mutable {
        primitive.execute(stream, arguments);
        stream.wait();
    };
}

} // namespace

std::string version() {
    const dnnl_version_t* const v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch);
}

Multiplication multiplication(const Product<float>& product, Weights weights) {
    return multiplication_of(product, weights);
}

Multiplication multiplication(const Product<reigen::bfloat16>& product, Weights weights) {
    return multiplication_of(product, weights);
}

} // namespace peers::onednn

#else

namespace peers::onednn {

std::string version() {
    return {};
}

Multiplication multiplication(const Product<float>&, Weights) {
    return {};
}

Multiplication multiplication(const Product<reigen::bfloat16>&, Weights) {
    return {};
}

} // namespace peers::onednn

#endif
