#include "peers/openblas.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace peers::openblas {
namespace {

// The part of its C interface that is used, whose int is 32 bits wide in every distribution's libopenblas.so.0.
template <class T>
using Gemm = void (*)(int order, int transposed_a, int transposed_b, int m, int n, int k, T alpha, const T* a, int lda,
                      const T* b, int ldb, T beta, T* c, int ldc);
constexpr int row_major = 101, plain = 111, transposed = 112;

struct Library {
    Gemm<float> sgemm = nullptr;
    Gemm<double> dgemm = nullptr;
    std::string version;
};

/// Left to itself, OpenBLAS up to 0.3.21 takes its AVX2 kernels for processors with AVX-512 that it does not know, at
/// half of their speed. Whoever set the variable knows better.
void choose_kernels() {
#if defined(__AVX512BF16__)
    setenv("OPENBLAS_CORETYPE", "Cooperlake", 0);
#elif defined(__AVX512F__)
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
#endif
}

Library load() {
    choose_kernels(); // read when it is loaded, which is why it is not linked
    void* const handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return {};
    const auto find = [&]<class Function>(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(handle, name));
        return function != nullptr;
    };
    Library library;
    void (*set_threads)(int) = nullptr;
    const char* (*config)() = nullptr;
    const char* (*core)() = nullptr;
    if (!find(library.sgemm, "cblas_sgemm") || !find(library.dgemm, "cblas_dgemm") ||
        !find(set_threads, "openblas_set_num_threads") || !find(config, "openblas_get_config") ||
        !find(core, "openblas_get_corename"))
        return {};
    set_threads(1);
    const std::string name_and_number = config(); // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
    library.version = name_and_number.substr(0, name_and_number.find(' ', name_and_number.find(' ') + 1)) + ", " +
                      core() + " kernels";
    return library;
}

const Library& library() {
    static const Library loaded = load();
    return loaded;
}

template <class T>
Multiplication multiplication_by(Gemm<T> gemm, const Product<T>& product) {
    if (gemm == nullptr)
        return {};
    const auto stride_of = [](const auto& x) { return int(x.col_stride == 1 ? x.row_stride : x.col_stride); };
    const auto order_of = [](const auto& x) { return x.col_stride == 1 ? plain : transposed; };
    return [=] {
        const auto& [a, b, c] = product;
        gemm(row_major, order_of(a), order_of(b), int(c.rows), int(c.cols), int(a.cols), 1, a.data, stride_of(a),
             b.data, stride_of(b), 0, c.data, stride_of(c));
    };
}

} // namespace

const std::string& version() {
    return library().version;
}

Multiplication multiplication(const Product<float>& product) {
    return multiplication_by(library().sgemm, product);
}

Multiplication multiplication(const Product<double>& product) {
    return multiplication_by(library().dgemm, product);
}

} // namespace peers::openblas
