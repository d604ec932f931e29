#pragma once

#include <reigen/matmul/checks.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The sum of every `width`-th local column, down all rows: width = the number of columns gives column sums.
template <class S>
std::vector<Accumulator<S>> folded_sums(Strided<const S> x, Index width) {
    using T = Accumulator<S>;
    std::vector<T> sums(std::size_t(width), T(0));
    for (Index i = 0; i < x.rows; ++i)
        for (Index first = 0; first < x.cols; first += width) {
            const S* row = &x(i, first);
            if (x.col_stride == 1)
                for (Index j = 0; j < width; ++j)
                    sums[std::size_t(j)] += T(row[j]);
            else
                for (Index j = 0; j < width; ++j)
                    sums[std::size_t(j)] += T(row[j * x.col_stride]);
        }
    return sums;
}

/// v = sums + beta v, for a single row v.
template <class T, class V>
void store_sums(const std::vector<T>& sums, T beta, Strided<V> v) {
    for (Index j = 0; j < v.cols; ++j) {
        const T sum = sums[std::size_t(j)];
        v(0, j) = V(beta == T(0) ? sum : sum + beta * T(v(0, j)));
    }
}

/// Whether the local columns are whole groups of `width` that start at multiples of it.
inline bool has_whole_groups(const Runs& cols, Index width) {
    for (Index j = 0; j < cols.size(); ++j)
        if (cols[j] % width != j % width)
            return false;
    return cols.size() % width == 0;
}

} // namespace detail

/// v = column sums of x + beta v: the gradient of a bias, or of whatever every row shares. Does not communicate.
///
/// Shapes      x [m, n]; v [1, n], placed as column_sums(X), {none; X.cols; X.rows}, and divided as x's columns
/// Collective  no
/// Throws      ShapeError on every rank
/// Order       rows in local order
template <ShardedLike X, ShardedLike V>
void column_sums_into(const X& x, Accumulator<ScalarOf<X>> beta, V&& v) {
    detail::check_sum<placement_of<X>>();
    static_assert(placement_of<V> == column_sums(placement_of<X>),
                  "reigen: column_sums_into(x, beta, v): declare v as Sharded<..., column_sums(placement of x)>");
    detail::require_same_mesh(x.spec(), v.spec(), "column_sums");
    detail::require_no_copies(x.row_partition(), "column_sums", "");
    require<ShapeError>(v.rows() == 1 && v.cols() == x.cols(), "column_sums: x is ", shape(x.rows(), x.cols()),
                        ", v is ", shape(v.rows(), v.cols()));
    detail::require_equal(x.col_partition(), v.col_partition(), "column_sums", "x's columns", "v's columns");
    const Strided<const typename X::Element> local = x.strided();
    detail::store_sums(detail::folded_sums(local, local.cols), beta, v.strided());
}

/// The sum down each column, [1, n]: {none; X.cols; partial X.rows}. Does not communicate.
template <ShardedLike X>
auto column_sums(const X& x) {
    detail::check_sum<placement_of<X>>();
    Sharded<ScalarOf<X>, column_sums(placement_of<X>)> v(x.mesh(), Partition::whole(1), x.col_partition());
    column_sums_into(x, 0, v);
    return v;
}

/// v = the sum of all rows and of all groups of columns, + beta v: the gradient of one parameter that all heads share,
/// though the heads are split over ranks. Does not communicate.
///
/// Shapes      x [m, heads * width], each rank with whole heads; v [1, width], placed as shared_sums(X), partial over
///             all axes that split x. Axes over which x is replicated repeat the same work, and are not summed
/// Throws      ShapeError on every rank, for heads that are split on the ranks that see it
template <ShardedLike X, ShardedLike V>
void shared_sums_into(const X& x, Accumulator<ScalarOf<X>> beta, V&& v) {
    detail::check_sum<placement_of<X>>();
    static_assert(placement_of<V> == shared_sums(placement_of<X>),
                  "reigen: shared_sums_into(x, beta, v): declare v as Sharded<..., shared_sums(placement of x)>");
    detail::require_same_mesh(x.spec(), v.spec(), "shared_sums");
    detail::require_no_copies(x.row_partition(), "shared_sums", "");
    const Index width = v.cols();
    require<ShapeError>(v.rows() == 1 && width > 0 && x.cols() % width == 0, "shared_sums: x is ",
                        shape(x.rows(), x.cols()), ", v is ", shape(v.rows(), v.cols()));
    for (int rank = 0; rank < x.col_partition().ranks(); ++rank)
        require<ShapeError>(detail::has_whole_groups(x.col_partition().runs(rank), width), "shared_sums: rank ", rank,
                            " holds columns ", x.col_partition().runs(rank).to_string(), ", not whole groups of ",
                            width);
    const Strided<const typename X::Element> local = x.strided();
    detail::store_sums(detail::folded_sums(local, width), beta, v.strided());
}

/// The sum along each row, [m, 1]: {X.rows; none; partial X.cols}. Does not communicate.
template <ShardedLike X>
auto row_sums(const X& x) {
    detail::check_sum<placement_of<X>>();
    using T = Accumulator<ScalarOf<X>>;
    detail::require_no_copies(x.col_partition(), "row_sums", "");
    Sharded<ScalarOf<X>, row_sums(placement_of<X>)> sums(x.mesh(), x.row_partition(), Partition::whole(1));
    const auto local = x.strided();
    for (Index i = 0; i < local.rows; ++i) {
        T sum = 0;
        for (Index j = 0; j < local.cols; ++j)
            sum += T(local(i, j));
        sums.data()[i] = typename decltype(sums)::Element(sum);
    }
    return sums;
}

/// The largest element of each row, [m, 1], -inf for a row of none. A maximum is never partial: it is reduced over the
/// ranks at once. A NaN stays a NaN.
///
/// Collective  over the axes that split x's columns
template <ShardedLike X>
auto row_maxima(const X& x) {
    detail::check_sum<placement_of<X>>();
    using S = ScalarOf<X>;
    Sharded<S, split_rows(placement_of<X>.rows)> maxima(x.mesh(), x.row_partition(), Partition::whole(1));
    const auto local = x.strided();
    for (Index i = 0; i < local.rows; ++i) {
        S largest = -std::numeric_limits<S>::infinity();
        for (Index j = 0; j < local.cols; ++j)
            if (const S value = local(i, j); value > largest || value != value)
                largest = value;
        maxima.data()[i] = largest;
    }
    x.mesh()[placement_of<X>.cols].all_reduce(std::span(maxima.data(), std::size_t(local.rows)), Reduction::max);
    return maxima;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
