#pragma once

#include "nn/support.hpp"

#include <reigen/nn/gradients.hpp>

#include <span>
#include <vector>

namespace layer_cases {

// Gradients of sharded layers against differences of a number that every rank computes alike.

/// <a, b>, each element once, however many ranks hold it. Collective.
template <class A, class B>
double inner_product(const A& a, const B& b) {
    static_assert(A::placement == B::placement && !reigen::is_partial(A::placement));
    double sum = 0;
    for (reigen::Index i = 0; i < a.local().size(); ++i)
        sum += double(a.data()[i]) * double(b.data()[i]);
    a.mesh()[reigen::split_axes(A::placement)].all_reduce(std::span(&sum, 1));
    return sum;
}

/// d number / d step at 0, when move(step) moves what the number depends on. Collective.
inline double difference_quotient(const std::function<void(double)>& move, const std::function<double()>& number) {
    constexpr double step = 3e-4;
    double at = 0;
    const auto number_at = [&](double to) {
        move(to - at);
        at = to;
        return number();
    };
    const double near = number_at(step) - number_at(-step), far = number_at(2 * step) - number_at(-2 * step);
    move(-at);
    return (8 * near - far) / (12 * step); // wrong by the fifth derivative times step^4 / 30
}

/// A direction in the space of all elements: a dense one, or towards one element.
using Direction = std::function<double(reigen::Index i, reigen::Index j)>;

/// <gradient, direction>, each element once, whoever holds copies of it. Collective.
inline double along(const reigen::ShardSpec& spec, reigen::Strided<const double> gradient, const Direction& direction) {
    const auto owned = [](const reigen::Partition& partition, int rank) {
        return reigen::overlap(partition.runs(rank), partition.owned(rank)).first;
    };
    double sum = 0;
    for (const reigen::Run& rows : owned(spec.row_partition, spec.mesh.rank(spec.placement.rows)))
        for (const reigen::Run& cols : owned(spec.col_partition, spec.mesh.rank(spec.placement.cols)))
            for (reigen::Index i = 0; i < rows.count; ++i)
                for (reigen::Index j = 0; j < cols.count; ++j)
                    sum += gradient(rows[i], cols[j]) * direction(spec.row_runs()[rows[i]], spec.col_runs()[cols[j]]);
    spec.mesh[reigen::split_axes(spec.placement)].all_reduce(std::span(&sum, 1));
    return sum;
}

/// The gradient of memory that lies over the ranks as `spec` says, in some directions; on one rank towards every
/// element. All copies of an element move together. Collective.
inline void expect_difference_quotients(const reigen::ShardSpec& spec, reigen::Strided<double> local,
                                        reigen::Strided<const double> gradient, const std::function<double()>& number,
                                        const std::string& what) {
    std::vector<Direction> directions;
    for (const int which : {60, 70})
        directions.push_back([which](reigen::Index i, reigen::Index j) { return wave(which, i, j); });
    for (reigen::Index k = 0; k < spec.rows() * spec.cols() && spec.mesh.world().size() == 1; ++k)
        directions.push_back([k, cols = spec.cols()](reigen::Index i, reigen::Index j) { return i * cols + j == k; });
    for (const Direction& direction : directions) {
        const auto move = [&](double step) {
            for (reigen::Index i = 0; i < local.rows; ++i)
                for (reigen::Index j = 0; j < local.cols; ++j)
                    local(i, j) += step * direction(spec.row_runs()[i], spec.col_runs()[j]);
        };
        EXPECT_NEAR(along(spec, gradient, direction), difference_quotient(move, number), 1e-8) << what;
    }
}

inline void expect_difference_quotients(std::span<const reigen::ParameterView<double>> parameters,
                                        const std::function<double()>& number) {
    for (const auto& parameter : parameters)
        expect_difference_quotients(parameter.spec(), parameter.value, parameter.gradient, number, parameter.name);
}

} // namespace layer_cases
