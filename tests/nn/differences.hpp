#pragma once

#include "nn/support.hpp"

#include <reigen/nn/gradients.hpp>

#include <span>
#include <vector>

// Gradients of sharded layers against central differences of a number that every rank computes alike.

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

/// d number / d element (i, j), in global indices, of memory that lies over the ranks as `spec` says: all copies move
/// together. Collective; only the ranks that hold the element need `local`.
inline double difference_quotient(const reigen::ShardSpec& spec, reigen::Strided<double> local, reigen::Index i,
                                  reigen::Index j, const std::function<double()>& number) {
    constexpr double step = 3e-4;
    const auto row = spec.row_runs().find(i), col = spec.col_runs().find(j);
    double* const element = row && col ? &local(*row, *col) : nullptr;
    const double before = element ? *element : 0;
    const auto at = [&](double moved) {
        if (element)
            *element = before + moved;
        return number();
    };
    const double near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
    if (element)
        *element = before;
    return (8 * near - far) / (12 * step); // wrong by the fifth derivative times step^4 / 30
}

/// Every element of a gradient that is divided as the memory it is the gradient of. Collective.
inline void expect_difference_quotients(const reigen::ShardSpec& spec, reigen::Strided<double> local,
                                        reigen::Strided<const double> gradient, const std::function<double()>& number,
                                        const std::string& what) {
    double largest = 0;
    for (reigen::Index i = 0; i < spec.rows(); ++i)
        for (reigen::Index j = 0; j < spec.cols(); ++j) {
            const double want = difference_quotient(spec, local, i, j, number);
            const auto row = spec.row_runs().find(i), col = spec.col_runs().find(j);
            if (!row || !col)
                continue;
            const double error = std::abs(gradient(*row, *col) - want);
            largest = std::isnan(error) ? error : std::max(largest, error);
        }
    EXPECT_LE(largest, 1e-8) << what;
}

inline void expect_difference_quotients(std::span<const reigen::ParameterView<double>> parameters,
                                        const std::function<double()>& number) {
    for (const auto& parameter : parameters)
        expect_difference_quotients(parameter.spec(), parameter.value, parameter.gradient, number, parameter.name);
}
