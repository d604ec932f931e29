#pragma once

#include "support/worlds.hpp"

#include <reigen/layout/sharded.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

// Dense matrices of small integers and the plain loops over them that sharded results are compared with.

namespace dense_products {

struct Dense {
    reigen::Index rows = 0;
    reigen::Index cols = 0;
    std::vector<double> elements;

    Dense(reigen::Index m, reigen::Index n) : rows(m), cols(n), elements(std::size_t(m * n), 0.0) {}
    double& operator()(reigen::Index i, reigen::Index j) { return elements[std::size_t(i * cols + j)]; }
    double operator()(reigen::Index i, reigen::Index j) const { return elements[std::size_t(i * cols + j)]; }
};

/// Every element differs from its neighbours; products of a few hundred of them are exact in float.
inline Dense integers(reigen::Index m, reigen::Index n, int seed) {
    Dense x(m, n);
    for (reigen::Index i = 0; i < m; ++i)
        for (reigen::Index j = 0; j < n; ++j)
            x(i, j) = double((7 * i + 3 * j + i * j + 5 * seed) % 13) - 6;
    return x;
}

inline Dense times(const Dense& a, const Dense& b) {
    Dense c(a.rows, b.cols);
    for (reigen::Index i = 0; i < a.rows; ++i)
        for (reigen::Index j = 0; j < b.cols; ++j)
            for (reigen::Index k = 0; k < a.cols; ++k)
                c(i, j) += a(i, k) * b(k, j);
    return c;
}

inline Dense transposed(const Dense& a) {
    Dense t(a.cols, a.rows);
    for (reigen::Index i = 0; i < a.rows; ++i)
        for (reigen::Index j = 0; j < a.cols; ++j)
            t(j, i) = a(i, j);
    return t;
}

/// As placed: of a partial, the first rank has the values and the others have zeros.
template <reigen::Placement Where, class S>
reigen::Sharded<S, Where> sharded(const reigen::Mesh& mesh, const Dense& x, const reigen::Extent& rows,
                                  const reigen::Extent& cols) {
    return reigen::Sharded<S, Where>::from_global(mesh, rows, cols, x);
}

template <reigen::Placement Where, class S>
reigen::Sharded<S, Where> sharded(const reigen::Mesh& mesh, const Dense& x) {
    return sharded<Where, S>(mesh, x, x.rows, x.cols);
}

/// Every rank has the right element at each of its places; summands are added up by one plain all-reduce.
template <reigen::ShardedLike X>
void expect_equal(const X& x, const Dense& want) {
    using namespace reigen;
    ASSERT_EQ(x.rows(), want.rows);
    ASSERT_EQ(x.cols(), want.cols);
    const auto local = x.local();
    std::vector<double> held;
    for (Index i = 0; i < local.rows(); ++i)
        for (Index j = 0; j < local.cols(); ++j)
            held.push_back(double(local(i, j)));
    x.mesh()[placement_of<X>.partial].all_reduce(held);
    ASSERT_EQ(local.rows(), x.row_runs().size());
    ASSERT_EQ(local.cols(), x.col_runs().size());
    std::size_t next = 0;
    for (Index i = 0; i < local.rows(); ++i)
        for (Index j = 0; j < local.cols(); ++j)
            EXPECT_EQ(held[next++], want(x.row_runs()[i], x.col_runs()[j]))
                << placement_of<X> << " at " << x.row_runs()[i] << ", " << x.col_runs()[j];
}

} // namespace dense_products
