#pragma once

#include "support/worlds.hpp"

#include <reigen/layout/sharded.hpp>

#include <gtest/gtest.h>

#include <numeric>

// Matrices whose every element says where it belongs, and what a rank holds of them, found without the library's own
// redistribution.

inline double value(reigen::Index i, reigen::Index j) {
    return double(100 * i + j + 1);
}

/// What rank p of P holds of a partial sum whose value is `value(i, j)`: different on every rank, exact in float.
inline double summand(int p, int ranks, reigen::Index i, reigen::Index j) {
    const auto share = [&](int q) { return double(q * (7 * i - 3 * j + 5)); };
    double rest = value(i, j);
    for (int q = 1; q < ranks; ++q)
        rest -= share(q);
    return p == 0 ? rest : share(p);
}

template <reigen::Placement Where, class S = double>
reigen::Sharded<S, Where> filled(const reigen::Mesh& mesh, const reigen::Extent& rows, const reigen::Extent& cols) {
    reigen::Sharded<S, Where> x(mesh, rows, cols);
    for (reigen::Index i = 0; i < x.local().rows(); ++i)
        for (reigen::Index j = 0; j < x.local().cols(); ++j)
            x.local()(i, j) = typename decltype(x)::Element(
                summand(mesh.rank(Where.partial), mesh.size(Where.partial), x.row_runs()[i], x.col_runs()[j]));
    return x;
}

/// Every rank holds the right element at each of its places; summands are added up by one plain all-reduce.
template <reigen::ShardedLike X>
void expect_values(const X& x) {
    using namespace reigen;
    constexpr Placement where = placement_of<X>;
    const auto local = x.local();
    std::vector<double> held;
    for (Index i = 0; i < local.rows(); ++i)
        for (Index j = 0; j < local.cols(); ++j)
            held.push_back(double(local(i, j)));
    x.mesh()[where.partial].all_reduce(held);
    ASSERT_EQ(local.rows(), x.row_runs().size());
    ASSERT_EQ(local.cols(), x.col_runs().size());
    std::size_t next = 0;
    for (Index i = 0; i < local.rows(); ++i)
        for (Index j = 0; j < local.cols(); ++j)
            EXPECT_EQ(held[next++], value(x.row_runs()[i], x.col_runs()[j]))
                << where << " at " << x.row_runs()[i] << ", " << x.col_runs()[j];
}

/// n items over the ranks of these axes: uneven, interleaved, backwards, with an empty rank where there are three.
inline reigen::Partition scrambled(const reigen::Mesh& mesh, reigen::Axes axes, reigen::Index n) {
    using namespace reigen;
    const int ranks = mesh.size(axes);
    const int holders = ranks > 2 ? ranks - 1 : ranks;
    std::vector<Runs> runs(static_cast<std::size_t>(ranks));
    for (Index i = n; i-- > 0;)
        runs[std::size_t((i * i + 1) % holders)].append({i, 1, 1});
    return Partition::of_runs(n, runs);
}
