#pragma once

#include <reigen/layout/block_copy.hpp>
#include <reigen/matmul/checks.hpp>

#include <functional>
#include <type_traits>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// to = operation(to, other) for n elements, in the accumulator type.
template <class To, class Other, class Operation>
void combine_row(To* to, const Other* other, Index stride, Index n, Operation operation) {
    using T = Accumulator<To>;
    if (stride == 1)
        for (Index j = 0; j < n; ++j)
            to[j] = To(operation(T(to[j]), T(other[j])));
    else
        for (Index j = 0; j < n; ++j)
            to[j] = To(operation(T(to[j]), T(other[j * stride])));
}

/// operation(x, other), element by element. An x that is given away becomes the result, any other is left as it is.
template <ShardedLike X, class Other, class Operation>
auto combined(X&& x, Strided<Other> other, Operation operation) {
    using Result = Sharded<ScalarOf<X>, placement_of<X>>;
    constexpr bool in_place = std::is_same_v<X, Result>;
    const Strided<const typename Result::Element> from = x.strided();
    Result result = [&] {
        if constexpr (in_place)
            return std::move(x);
        else
            return Result(x.spec());
    }();
    const auto to = result.strided();
    for (Index i = 0; i < to.rows; ++i) {
        auto* const row = to.row(i);
        if constexpr (!in_place)
            for_row(from.row(i), from.col_stride, row, 1, to.cols, AssignElement());
        combine_row(row, other.row(i), other.col_stride, to.cols, operation);
    }
    return result;
}

/// One row, seen as the same row over and over.
template <class T>
Strided<T> repeated(Strided<T> row, Index rows) {
    return {row.data, rows, row.cols, 0, row.col_stride};
}

template <ShardedLike X, ShardedLike V>
void require_row(const X& x, const V& v, const char* call) {
    require_same_mesh(x.spec(), v.spec(), call);
    require<ShapeError>(v.rows() == 1 && v.cols() == x.cols(), call, ": x is ", shape(x.rows(), x.cols()), ", v is ",
                        shape(v.rows(), v.cols()), "; want ", shape(1, x.cols()));
    require_equal(x.col_partition(), v.col_partition(), call, "x's columns", "v's columns");
}

} // namespace detail

/// x + y, both placed and divided alike; two partial sums give one. Does not communicate.
template <ShardedLike X, ShardedLike Y>
auto add(X&& x, const Y& y) {
    detail::check_add<placement_of<X>, placement_of<Y>>();
    detail::require_alike(x.spec(), y.spec(), "add");
    return detail::combined(std::forward<X>(x), y.strided(), std::plus<>());
}

/// x + v on every row; v [1, n] is split as x's columns. Does not communicate.
template <ShardedLike X, ShardedLike V>
auto add_bias(X&& x, const V& v) {
    detail::check_row<placement_of<X>, placement_of<V>>();
    detail::require_row(x, v, "add_bias");
    const auto rows = detail::repeated(v.strided(), x.strided().rows);
    return detail::combined(std::forward<X>(x), rows, std::plus<>());
}

/// x times v on every row; v [1, n] is split as x's columns. Does not communicate.
template <ShardedLike X, ShardedLike V>
auto scale_columns(X&& x, const V& v) {
    detail::check_row<placement_of<X>, placement_of<V>>();
    detail::require_row(x, v, "scale_columns");
    const auto rows = detail::repeated(v.strided(), x.strided().rows);
    return detail::combined(std::forward<X>(x), rows, std::multiplies<>());
}

/// alpha x; also of a partial sum, where every summand is scaled. Does not communicate.
template <ShardedLike X>
auto scale(Accumulator<ScalarOf<X>> alpha, X&& x) {
    const Strided<const Accumulator<ScalarOf<X>>> factor{&alpha, x.strided().rows, x.strided().cols, 0, 0};
    return detail::combined(std::forward<X>(x), factor, std::multiplies<>());
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
