#pragma once

#include <reigen/comm/matrix.hpp>
#include <reigen/core/error.hpp>
#include <reigen/layout/rules.hpp>
#include <reigen/layout/sharded.hpp>

#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Some are sharded, others are matrices of Eigen's.
template <class... X>
concept PartlySharded =
    ((ShardedLike<X> || EigenMatrix<X>) && ...) && (ShardedLike<X> || ...) && (EigenMatrix<X> || ...);

template <class... X>
constexpr void refuse_plain_matrices() {
    static_assert(!PartlySharded<X...>,
                  "reigen: a product of sharded matrices is given one that is not; wrap it: shard<Where>(mesh, matrix, "
                  "rows, cols)");
}

template <Placement A, Placement B>
constexpr void check_product() {
    static_assert(!is_partial(A), "reigen: matmul(a, b): a is a partial sum; sum it first: matmul(sum(a), b)");
    static_assert(!is_partial(B), "reigen: matmul(a, b): b is a partial sum; sum it first: matmul(a, sum(b))");
    static_assert(
        is_partial(A) || is_partial(B) || shared_axis_agrees(A, B),
        "reigen: matmul(a, b): a's columns and b's rows are split over different axes; write redistribute<...>(a) "
        "or redistribute<...>(b) so that both are split alike");
    static_assert(is_partial(A) || is_partial(B) || !shared_axis_agrees(A, B) || result_axes_are_disjoint(A, B),
                  "reigen: matmul(a, b): one axis splits a's rows and b's columns; gather one of them over it first: "
                  "matmul(redistribute<...>(a), b)");
}

template <Placement Product, Placement C>
constexpr void check_accumulator() {
    static_assert(can_accumulate(Product, C),
                  "reigen: matmul_into(alpha, a, b, beta, c): c is placed neither as the product a b nor as its sum; "
                  "declare c as Sharded<..., product(placement of a, placement of b)>");
}

template <Placement X>
constexpr void check_sum() {
    static_assert(can_sum(X), "reigen: column and row sums are not taken of a partial sum; sum it first: sum(x)");
}

template <Placement X, Placement Y>
constexpr void check_add() {
    static_assert(
        is_partial(X) == is_partial(Y),
        "reigen: add(x, y): one is a partial sum and the other is not, it would be counted once on every rank; "
        "sum it first: sum(x)");
    static_assert(is_partial(X) != is_partial(Y) || can_add(X, Y),
                  "reigen: add(x, y): x and y are placed differently; write add(x, redistribute<...>(y))");
}

template <Placement X, Placement V>
constexpr void check_row() {
    static_assert(!is_partial(X), "reigen: a bias or scale on a partial sum would be counted once on every rank; sum x "
                                  "first: add_bias(sum(x), v)");
    static_assert(!is_partial(V), "reigen: the bias or scale is a partial sum; sum it first: add_bias(x, sum(v))");
    static_assert(is_partial(X) || is_partial(V) || can_apply_row(X, V),
                  "reigen: a bias or scale is split as the columns it is applied to; write add_bias(x, "
                  "redistribute<split_cols(...)>(v)) with the axes that split x's columns");
}

/// Whether both sides of a product or a sum are divided alike; says where they are not.
inline void require_equal(const Partition& x, const Partition& y, const char* call, const char* x_name,
                          const char* y_name) {
    if (x == y)
        return;
    require<ShapeError>(x.ranks() == y.ranks(), call, ": ", x_name, " over ", x.ranks(), " ranks, ", y_name, " over ",
                        y.ranks());
    int rank = 0;
    while (x.runs(rank) == y.runs(rank))
        ++rank;
    throw ShapeError(concat(call, ": ", x_name, " and ", y_name, " are divided differently, rank ", rank, " holds ",
                            x.runs(rank).to_string(), " and ", y.runs(rank).to_string(),
                            "; redistribute one of them with the other's partition"));
}

inline void require_same_mesh(const ShardSpec& a, const ShardSpec& b, const char* call) {
    require<ArgumentError>(a.mesh == b.mesh, call, ": the matrices lie on different meshes, ", to_string(a.mesh.axes()),
                           " and ", to_string(b.mesh.axes()), a.mesh.axes() == b.mesh.axes() ? " of other ranks" : "");
}

inline void require_factors(const ShardSpec& a, const ShardSpec& b, const char* call) {
    require_same_mesh(a, b, call);
    require<ShapeError>(a.cols() == b.rows(), call, ": a is ", shape(a.rows(), a.cols()), ", b is ",
                        shape(b.rows(), b.cols()));
    require_equal(a.col_partition, b.row_partition, call, "a's columns", "b's rows");
}

/// An item of a sum that two ranks hold would be counted twice.
inline void require_no_copies(const Partition& summed, const char* call, const char* advice) {
    require<ShapeError>(!summed.overlaps(), call, ": several ranks hold the same items of what is summed", advice);
}

inline void require_alike(const ShardSpec& x, const ShardSpec& y, const char* call) {
    require_same_mesh(x, y, call);
    require<ShapeError>(x.rows() == y.rows() && x.cols() == y.cols(), call, ": ", shape(x.rows(), x.cols()), " and ",
                        shape(y.rows(), y.cols()));
    require_equal(x.row_partition, y.row_partition, call, "the rows of x", "those of y");
    require_equal(x.col_partition, y.col_partition, call, "the columns of x", "those of y");
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
