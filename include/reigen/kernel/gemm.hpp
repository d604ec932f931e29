#pragma once

#include <reigen/core/error.hpp>
#include <reigen/kernel/gemm_parts.hpp>

#include <algorithm>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// C = beta C.
template <class T, class Out>
void scale_only(T beta, Strided<Out> c) {
    if (beta == T(1))
        return;
    for (Index i = 0; i < c.rows; ++i)
        for (Index j = 0; j < c.cols; ++j)
            c(i, j) = beta == T(0) ? Out(0) : Out(beta * T(c(i, j)));
}

/// Whether C^T = B^T A^T should be computed instead: vectors run along C's rows, so these should be contiguous, or,
/// where they are shorter than a packet, be the longer side. The bits do not depend on the choice.
template <class T, class Out>
bool better_transposed(const Strided<Out>& c) {
    if (std::min(c.rows, c.cols) < lanes<T>)
        return c.rows > c.cols;
    return c.col_stride != 1 && c.row_stride == 1;
}

/// gemm once its arguments are checked: what is instantiated once for each type. A packed right factor fixes along what
/// vectors run.
template <class From, class Right, class Out>
void gemm_checked(Accumulator<From> alpha, Strided<const From> a, Right b, Accumulator<From> beta, Strided<Out> c) {
    using T = Accumulator<From>;
    if (c.empty())
        return;
    if (alpha == T(0) || a.cols == 0)
        return scale_only<T>(beta, c);
    if constexpr (std::is_same_v<Right, Strided<const From>>)
        if (better_transposed<T>(c))
            return multiply_parts<From>(alpha, b.transpose(), a.transpose(), beta, c.transpose());
    multiply_parts<From>(alpha, a, b, beta, c);
}

// What this project's own programs link instead of compiling it again; nothing of it reaches a user of the headers.
#ifdef REIGEN_KERNEL_INSTANTIATION
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const float>, Strided<const float>, float,
                                                       Strided<float>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const float>, PackedRight<float>, float,
                                                       Strided<float>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const float>, PackedRightForManyRows<float>,
                                                       float, Strided<float>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(double, Strided<const double>, Strided<const double>, double,
                                                       Strided<double>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(double, Strided<const double>, PackedRight<double>, double,
                                                       Strided<double>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(double, Strided<const double>, PackedRightForManyRows<double>,
                                                       double, Strided<double>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const bfloat16>, Strided<const bfloat16>, float,
                                                       Strided<bfloat16>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const bfloat16>, PackedRight<bfloat16>, float,
                                                       Strided<bfloat16>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const bfloat16>, PackedRightForManyRows<bfloat16>,
                                                       float, Strided<bfloat16>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const bfloat16>, Strided<const bfloat16>, float,
                                                       Strided<float>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const bfloat16>, PackedRight<bfloat16>, float,
                                                       Strided<float>);
REIGEN_KERNEL_INSTANTIATION template void gemm_checked(float, Strided<const bfloat16>, PackedRightForManyRows<bfloat16>,
                                                       float, Strided<float>);
#endif

/// What gemm asks of its arguments; `b_rows` and `b_cols` are of the right factor, `b_data` where it starts.
template <class A, class C>
void require_product(const Strided<A>& a, Index b_rows, Index b_cols, const void* b_data, const Strided<C>& c) {
    require<ShapeError>(a.cols == b_rows && c.rows == a.rows && c.cols == b_cols, "gemm: a is ", shape(a.rows, a.cols),
                        ", b is ", shape(b_rows, b_cols), ", c is ", shape(c.rows, c.cols));
    require_elements(a, "gemm");
    require_elements(c, "gemm");
    const auto starts_with_c = [&](const void* factor, bool empty) { return !empty && !c.empty() && factor == c.data; };
    require(!starts_with_c(a.data, a.empty()) && !starts_with_c(b_data, b_rows == 0 || b_cols == 0), "gemm: c, ",
            shape(c.rows, c.cols), ", lies where a factor does; want memory of its own");
}

template <class From, class B, class C>
constexpr void check_types() {
    static_assert(std::is_same_v<From, std::remove_const_t<B>>, "reigen: gemm multiplies factors of one type");
    static_assert(std::is_same_v<C, From> || std::is_same_v<C, Accumulator<From>>,
                  "reigen: gemm writes the type of its factors or of their sums");
}

/// `gemm` with a packed right factor for products of many rows; of few, it is right but not fast. A file that has only
/// these compiles in less time.
template <class A, class B, class C>
void gemm_many_rows(Accumulator<A> alpha, const Strided<A>& a, const PackedWeight<B>& b, Accumulator<A> beta,
                    const Strided<C>& c) {
    using From = std::remove_const_t<A>;
    check_types<From, B, C>();
    require_product(a, b.rows(), b.cols(), nullptr, c);
    gemm_checked<From>(alpha, Strided<const From>(a), PackedRightForManyRows<B>{b.factor()}, beta, c);
}

} // namespace detail

/// C = alpha A B + beta C on one rank, with any strides: transposes and both storage orders are views.
///
/// Sums are taken in Accumulator<A>; bfloat16 factors may have a bfloat16 or a float C, which is rounded once, after
/// the last k; where they are multiplied in pairs or tiles, subnormal numbers count as 0. C must not overlap A or B.
/// Where beta is 0, C is not read; where alpha is 0 or k is 0, A and B are not.
///
/// Shapes      a [m, k], b [k, n], c [m, n]; any of them may be 0
/// Cost        2 m n k flops, over OpenMP's threads in a file compiled for it; at most 3.3 MB of scratch memory a thread,
///             kept by it (7.4 MB where C is bfloat16; up to 16 rows, those of the factors and of C)
/// Collective  no; lets messages in flight move about every 80 us
/// Throws      ShapeError; ArgumentError for a matrix without memory, or a C that begins where a factor does; Error where
///             the system does not grant the AMX that the file is compiled for
/// Order       fixed by gemm_k_block alone: row and column slices of a product are bitwise the slices of the whole, and
///             the number of threads changes no bit
template <class A, class B, class C>
void gemm(Accumulator<A> alpha, const Strided<A>& a, const Strided<B>& b, Accumulator<A> beta, const Strided<C>& c) {
    using From = std::remove_const_t<A>;
    detail::check_types<From, B, C>();
    detail::require_elements(b, "gemm");
    detail::require_product(a, b.rows, b.cols, b.data, c);
    detail::gemm_checked<From>(alpha, Strided<const From>(a), Strided<const From>(b), beta, c);
}

/// C = alpha A B + beta C with a packed right factor, in the bits that the matrix gives.
///
/// Shapes      a [m, k], b [k, n], c [m, n]; any of them may be 0
/// Cost        2 m n k flops, as with the matrix, less its packing. Up to 16 rows the packed factor is read once, as fast
///             as memory streams. Rows of C should be contiguous: others are written element by element
/// Collective  no; lets messages in flight move about every 80 us
/// Throws      ShapeError; ArgumentError for a matrix without memory, or a C that begins where A does
/// Order       as with the matrix
template <class A, class B, class C>
void gemm(Accumulator<A> alpha, const Strided<A>& a, const PackedWeight<B>& b, Accumulator<A> beta,
          const Strided<C>& c) {
    using From = std::remove_const_t<A>;
    detail::check_types<From, B, C>();
    detail::require_product(a, b.rows(), b.cols(), nullptr, c);
    detail::gemm_checked<From>(alpha, Strided<const From>(a), b.factor(), beta, c);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
