#pragma once

#include <reigen/layout/audit.hpp>
#include <reigen/matmul/checks.hpp>

#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// For some rows of a product: the elements in double, and the sums of the magnitudes of their terms. A rank has the
/// columns of its part of b, and the rows of its part of a; the others are zero.
class ReferenceRows {
  public:
    ReferenceRows(std::vector<Index> rows, Index cols)
        : rows_(std::move(rows)), cols_(cols), values_(2 * rows_.size() * std::size_t(cols)) {}

    const std::vector<Index>& rows() const { return rows_; }
    double& value(std::size_t row, Index col) { return values_[2 * (row * std::size_t(cols_) + std::size_t(col))]; }
    double& magnitude(std::size_t row, Index col) { return (&value(row, col))[1]; }

    template <class A, class B>
    void add_product(Strided<const A> a, Strided<const B> b, const Runs& row_runs) {
        for (std::size_t i = 0; i < rows_.size(); ++i)
            if (const auto local = row_runs.find(rows_[i]))
                for (Index k = 0; k < b.rows; ++k)
                    for (Index j = 0; j < cols_; ++j) {
                        const double term = double(a(*local, k)) * double(b(k, j));
                        value(i, j) += term;
                        magnitude(i, j) += std::abs(term);
                    }
    }

    template <class T>
    void add_row(Strided<const T> row) {
        for (std::size_t i = 0; i < rows_.size(); ++i)
            for (Index j = 0; j < cols_; ++j) {
                value(i, j) += double(row(0, j));
                magnitude(i, j) += std::abs(double(row(0, j)));
            }
    }

    void sum_over(const Communicator& ranks) { ranks.all_reduce(values_); }

  private:
    std::vector<Index> rows_;
    Index cols_;
    std::vector<double> values_;
};

/// The drawn rows of c, the summands of a partial one added up in double.
template <ShardedLike C>
ReferenceRows rows_of(const C& c, const std::vector<Index>& drawn) {
    ReferenceRows rows(drawn, c.spec().local_cols());
    const auto local = c.strided();
    for (std::size_t i = 0; i < drawn.size(); ++i)
        if (const auto row = c.row_runs().find(drawn[i]))
            for (Index j = 0; j < local.cols; ++j)
                rows.value(i, j) = double(local(*row, j));
    if constexpr (is_partial(placement_of<C>))
        rows.sum_over(c.mesh()[placement_of<C>.partial]);
    return rows;
}

template <ShardedLike A, ShardedLike B, ShardedLike C>
AuditReport audit_rows(const A& a, const B& b, const C& c, ReferenceRows reference) {
    AuditTally tally;
    ReferenceRows computed = rows_of(c, reference.rows());
    for (std::size_t i = 0; i < reference.rows().size(); ++i) {
        const Index row = reference.rows()[i];
        if (!c.row_runs().find(row) || !a.row_runs().find(row))
            continue;
        for (Index j = 0; j < c.spec().local_cols(); ++j)
            if (const auto col = b.col_runs().find(c.col_runs()[j]))
                tally.compare(computed.value(i, j), reference.value(i, *col), reference.magnitude(i, *col), row,
                              c.col_runs()[j]);
    }
    return tally.report(c.mesh());
}

template <ShardedLike A, ShardedLike B, ShardedLike C>
ReferenceRows reference_rows(const A& a, const B& b, const C& c, const AuditOptions& options) {
    check_product<placement_of<A>, placement_of<B>>();
    check_accumulator<product(placement_of<A>, placement_of<B>), placement_of<C>>();
    require_factors(a.spec(), b.spec(), "audit_product");
    require_same_mesh(a.spec(), c.spec(), "audit_product");
    require<ShapeError>(c.rows() == a.rows() && c.cols() == b.cols(), "audit_product: a b is ",
                        shape(a.rows(), b.cols()), ", c is ", shape(c.rows(), c.cols()));
    ReferenceRows reference(audited_rows(options, a.rows()), b.spec().local_cols());
    using TA = std::remove_const_t<typename std::remove_cvref_t<decltype(a.view())>::Element>;
    using TB = std::remove_const_t<typename std::remove_cvref_t<decltype(b.view())>::Element>;
    reference.add_product(Strided<const TA>(a.strided()), Strided<const TB>(b.strided()), a.row_runs());
    if constexpr (placement_of<A>.cols != Axes::none)
        reference.sum_over(a.mesh()[placement_of<A>.cols]);
    return reference;
}

} // namespace detail

/// Recomputes some rows of c = a b, or of c = a b + bias, in double on all ranks, and says how far c is from them:
/// what local products and sums over ranks have made of it together.
///
/// Shapes      a [m, k], b [k, n], c [m, n] as for `matmul_into`: c may be partial, its sum, or a split of that;
///             bias [1, n], split as b's columns
/// Cost        2 K k n flops in double over the ranks that hold them, for K rows; all-reduces of K n numbers; K n as
///             memory
/// Collective  over the whole mesh
/// Throws      ShapeError, ArgumentError on every rank before any message
template <ShardedLike A, ShardedLike B, ShardedLike C>
AuditReport audit_product(const A& a, const B& b, const C& c, const AuditOptions& options = {}) {
    return detail::audit_rows(a, b, c, detail::reference_rows(a, b, c, options));
}

template <ShardedLike A, ShardedLike B, ShardedLike C, ShardedLike Bias>
AuditReport audit_product(const A& a, const B& b, const C& c, const Bias& bias, const AuditOptions& options) {
    static_assert(placement_of<Bias> == Placement{.cols = placement_of<B>.cols},
                  "reigen: audit_product: the bias is split as the columns of b");
    detail::ReferenceRows reference = detail::reference_rows(a, b, c, options);
    detail::require_equal(b.col_partition(), bias.col_partition(), "audit_product", "b's columns", "the bias");
    using T = std::remove_const_t<typename std::remove_cvref_t<decltype(bias.view())>::Element>;
    reference.add_row(Strided<const T>(bias.strided()));
    return detail::audit_rows(a, b, c, std::move(reference));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
