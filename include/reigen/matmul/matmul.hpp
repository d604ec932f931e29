#pragma once

#include <reigen/kernel/gemm.hpp>
#include <reigen/layout/block_copy.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/checks.hpp>

#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

template <ShardedLike A, IsPlaced B>
ShardSpec product_spec(const A& a, const B& b) {
    static_assert(std::is_same_v<ScalarOf<A>, ScalarOf<B>>, "reigen: matmul multiplies matrices of one scalar type");
    return {a.mesh(), product(placement_of<A>, placement_of<B>), a.row_partition(), b.col_partition()};
}

/// a b, where b's elements on this rank are `right`; `instead` ends the sentence that refuses items held twice.
template <ShardedLike A, IsPlaced B, class Right>
auto multiply(const A& a, const B& b, const Right& right, const char* instead) {
    check_product<placement_of<A>, placement_of<B>>();
    using T = Accumulator<ScalarOf<A>>;
    require_factors(a.spec(), b.spec(), "matmul");
    require_no_copies(a.col_partition(), "matmul", instead);
    Sharded<ScalarOf<A>, product(placement_of<A>, placement_of<B>)> c(product_spec(a, b));
    gemm(T(1), a.strided(), right, T(0), c.strided());
    return c;
}

/// c = sum + beta c, rounded once; c is not read where beta is 0.
template <class T, class Out>
void add_scaled(Strided<const T> sum, T beta, Strided<Out> c) {
    if (beta == T(0))
        for_block(sum, c, AssignElement());
    else
        for_block(sum, c, [beta](Out& to, const T& from) { to = Out(from + beta * T(to)); });
}

/// The product where it is to be summed over the ranks before it meets c. One rank needs no memory for the summand.
template <ShardedLike A, ShardedLike B, ShardedLike C>
void multiply_and_sum(Accumulator<ScalarOf<A>> alpha, const A& a, const B& b, Accumulator<ScalarOf<A>> beta, C& c) {
    using T = Accumulator<ScalarOf<A>>;
    const bool alone = a.mesh().size(placement_of<A>.cols) == 1;
    if (alone && c.row_partition() == a.row_partition() && c.col_partition() == b.col_partition())
        return gemm(alpha, a.strided(), b.strided(), beta, c.strided());
    Sharded<T, product(placement_of<A>, placement_of<B>)> summand(product_spec(a, b));
    gemm(alpha, a.strided(), b.strided(), T(0), summand.strided());
    const auto sum = redistribute<placement_of<C>>(std::move(summand), c.row_partition(), c.col_partition());
    add_scaled(sum.strided(), beta, c.strided());
}

} // namespace detail

// Plain matrices do not compile, with a sentence that says what to write instead.

template <class A, class B>
    requires detail::PartlySharded<A, B>
auto matmul(const A&, const B&) {
    detail::refuse_plain_matrices<A, B>();
}

template <class A, class B, class C>
    requires detail::PartlySharded<A, B, C>
auto matmul_into(double, const A&, const B&, double, C&&) {
    detail::refuse_plain_matrices<A, B, C>();
}

template <class Dy, class W>
    requires detail::PartlySharded<Dy, W>
auto input_gradient(const Dy&, const W&) {
    detail::refuse_plain_matrices<Dy, W>();
}

/// C = A B of sharded matrices. Does not communicate: what is split along the shared axis gives a partial sum, which
/// `redistribute` sums.
///
///     X split over rows of tokens, W by columns     matmul(x, w)       {R; tp; }
///     H split by columns, W by rows                 matmul(h, w)       {R; ; tp}, to be summed over tp
///     dX = dY W^T                                   matmul(dy, transpose(w))
///
/// Shapes      a [m, k], b [k, n], global; a's columns divided as b's rows; the result [m, n] is placed as
///             product(A, B) and divided as a's rows and b's columns
/// Cost        2 m n k flops over the local sizes
/// Collective  no
/// Throws      ShapeError on every rank: k differs, or is divided differently, or items of it are held twice
/// Order       over k as in `gemm`: slices of a product by rows or columns are bitwise the slices of the whole, so
///             these partitions give the same bits for every number of ranks
template <ShardedLike A, ShardedLike B>
auto matmul(const A& a, const B& b) {
    return detail::multiply(a, b, b.strided(), "; for a gradient by shared columns write input_gradient");
}

/// C = alpha A B + beta C. Communicates only where the product is a partial sum and c is not: then it is summed first,
/// and beta is applied once.
///
/// Shapes      a [m, k], b [k, n], c [m, n], global; c is placed as the product, partial included (gradients are
///             accumulated so), or as its sum, split further over the summed axes or not
/// Cost        as `matmul`; for a sum, its all-reduce or reduce-scatter and the local product as memory
/// Collective  over the axes that split k, where c is not partial over them
/// Throws      ShapeError, ArgumentError on every rank before any message; ArgumentError where c begins where a or b
///             does, on the ranks that hold any of it
/// Order       as `matmul`, then in rank order. Where beta is 0, c is not read; where alpha or k is 0, a and b are not
template <ShardedLike A, ShardedLike B, ShardedLike C>
void matmul_into(Accumulator<ScalarOf<A>> alpha, const A& a, const B& b, Accumulator<ScalarOf<A>> beta, C&& c) {
    detail::check_product<placement_of<A>, placement_of<B>>();
    constexpr Placement product_placement = product(placement_of<A>, placement_of<B>);
    detail::check_accumulator<product_placement, placement_of<C>>();
    detail::require_factors(a.spec(), b.spec(), "matmul_into");
    detail::require_no_copies(a.col_partition(), "matmul_into", "");
    detail::require_same_mesh(a.spec(), c.spec(), "matmul_into");
    require<ShapeError>(c.rows() == a.rows() && c.cols() == b.cols(), "matmul_into: a b is ", shape(a.rows(), b.cols()),
                        ", c is ", shape(c.rows(), c.cols()));
    if constexpr (placement_of<C> == product_placement) {
        detail::require_equal(a.row_partition(), c.row_partition(), "matmul_into", "a's rows", "c's rows");
        detail::require_equal(b.col_partition(), c.col_partition(), "matmul_into", "b's columns", "c's columns");
        gemm(alpha, a.strided(), b.strided(), beta, c.strided());
    } else {
        detail::multiply_and_sum(alpha, a, b, beta, c);
    }
}

/// dX = dY W^T, the gradient with respect to X of Y = X W. Does not communicate.
///
/// As `matmul(dy, transpose(w))`, and also where several ranks hold the same columns of W (K/V heads shared by ranks):
/// each rank's dY is then the gradient of its own copy, and all of them count.
///
/// Shapes      dy [m, n], w [k, n], global; the result [m, k] is placed as product(dY, W^T)
/// Throws      ShapeError on every rank: n differs, or is divided differently
template <ShardedLike Dy, ShardedLike W>
auto input_gradient(const Dy& dy, const W& w) {
    detail::check_product<placement_of<Dy>, transpose(placement_of<W>)>();
    using T = Accumulator<ScalarOf<Dy>>;
    const auto turned = transpose(w);
    detail::require_factors(dy.spec(), turned.spec(), "input_gradient");
    Sharded<ScalarOf<Dy>, product(placement_of<Dy>, transpose(placement_of<W>))> dx(detail::product_spec(dy, turned));
    gemm(T(1), dy.strided(), turned.strided(), T(0), dx.strided());
    return dx;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
