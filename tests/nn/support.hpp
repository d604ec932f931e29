#pragma once

#include "support/worlds.hpp"

#include <reigen/layout/parameter.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/nn/residual.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace layer_cases {

// What tests of layers share: meshes to run on, numbers that encode their place, comparison with dense matrices at
// global indices.

using Dense = reigen::RowMatrix<double>;

inline void on_meshes(const std::vector<std::vector<reigen::MeshAxis>>& meshes,
                      const std::function<void(const reigen::Mesh&)>& body) {
    for (const auto& axes : meshes)
        on_mesh(axes, [&](const reigen::Mesh& mesh) {
            SCOPED_TRACE("mesh " + reigen::to_string(axes) + ", rank " + std::to_string(mesh.world().rank()));
            body(mesh);
        });
}

/// Every mesh of up to four ranks that matters to a layer.
inline void on_layer_meshes(const std::function<void(const reigen::Mesh&)>& body) {
    using reigen::cp;
    using reigen::dp;
    using reigen::tp;
    on_meshes({{}, {{tp, 2}}, {{dp, 2}}, {{tp, 3}}, {{tp, 4}}, {{dp, 2}, {tp, 2}}, {{cp, 2}, {tp, 2}}}, body);
}

/// One mesh each of one, two, three and four ranks, where the body takes many passes.
inline void on_few_meshes(const std::function<void(const reigen::Mesh&)>& body) {
    using reigen::cp;
    using reigen::tp;
    on_meshes({{}, {{tp, 2}}, {{tp, 3}}, {{cp, 2}, {tp, 2}}}, body);
}

/// A number that differs with its place and with `which`.
inline double wave(int which, reigen::Index i, reigen::Index j) {
    return std::sin(0.9 * double(which) + 1.3 * double(i) + 0.7 * double(j)) + 0.05 * double((i + 2 * j) % 7);
}

inline Dense waves(int which, reigen::Index rows, reigen::Index cols) {
    Dense m(rows, cols);
    for (reigen::Index i = 0; i < rows; ++i)
        for (reigen::Index j = 0; j < cols; ++j)
            m(i, j) = wave(which, i, j);
    return m;
}

/// Dense products in plain loops.
inline Dense times(const Dense& a, const Dense& b) {
    Dense c = Dense::Zero(a.rows(), b.cols());
    for (reigen::Index i = 0; i < a.rows(); ++i)
        for (reigen::Index k = 0; k < a.cols(); ++k)
            for (reigen::Index j = 0; j < b.cols(); ++j)
                c(i, j) += a(i, k) * b(k, j);
    return c;
}

/// This rank's part of a matrix against the whole of what it should be.
template <class T>
void expect_at_global_indices(reigen::Strided<T> local, const reigen::Runs& rows, const reigen::Runs& cols,
                              const Dense& want, double tolerance, const std::string& what) {
    ASSERT_EQ(local.rows, rows.size()) << what;
    ASSERT_EQ(local.cols, cols.size()) << what;
    double largest = 0;
    for (reigen::Index i = 0; i < local.rows; ++i)
        for (reigen::Index j = 0; j < local.cols; ++j) {
            const double error = std::abs(double(local(i, j)) - want(rows[i], cols[j]));
            largest = std::isnan(error) ? error : std::max(largest, error);
        }
    EXPECT_LE(largest, tolerance) << what;
}

template <class X>
void expect_matches(const X& x, const Dense& want, double tolerance, const std::string& what) {
    static_assert(!reigen::is_partial(X::placement));
    ASSERT_EQ(x.rows(), want.rows()) << what;
    ASSERT_EQ(x.cols(), want.cols()) << what;
    expect_at_global_indices(x.strided(), x.row_runs(), x.col_runs(), want, tolerance, what);
}

template <class S>
void expect_gradient(const reigen::ParameterView<S>& parameter, const Dense& want, double tolerance) {
    const reigen::ShardSpec spec = parameter.spec();
    ASSERT_EQ(parameter.rows, want.rows()) << parameter.name;
    ASSERT_EQ(parameter.cols, want.cols()) << parameter.name;
    expect_at_global_indices(parameter.gradient, spec.row_runs(), spec.col_runs(), want, tolerance, parameter.name);
}

/// Sets a parameter on every rank to its part of a dense matrix.
template <class S>
void set_value(const reigen::ParameterView<S>& parameter, const Dense& dense) {
    const reigen::ShardSpec spec = parameter.spec();
    for (reigen::Index i = 0; i < parameter.value.rows; ++i)
        for (reigen::Index j = 0; j < parameter.value.cols; ++j)
            parameter.value(i, j) = S(dense(spec.row_runs()[i], spec.col_runs()[j]));
}

/// Those of `all` that this rank's rows name.
inline std::vector<std::int32_t> at_rows(const std::vector<std::int32_t>& all, const reigen::Runs& rows) {
    std::vector<std::int32_t> mine;
    for (reigen::Index i = 0; i < rows.size(); ++i)
        mine.push_back(all[std::size_t(rows[i])]);
    return mine;
}

} // namespace layer_cases
