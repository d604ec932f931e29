#pragma once

#include <reigen/comm/mesh.hpp>
#include <reigen/core/buffer.hpp>
#include <reigen/kernel/adamw.hpp>
#include <reigen/layout/parameter.hpp>
#include <reigen/layout/sum_overlaps.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

// Gradients of a list of parameters between the backward passes of a step and the optimizer.

template <class S>
void zero_gradients(std::span<const ParameterView<S>> parameters) {
    detail::require_parameters(parameters, "zero_gradients");
    for (const auto& parameter : parameters)
        std::fill_n(parameter.gradient.data, parameter.gradient.size(), Accumulator<S>(0));
}

namespace detail {

/// Gradients of no more elements travel together: below it a message costs more than the copies.
inline constexpr Index small_gradient = 1 << 13;

template <class T>
void all_reduce_together(const Communicator& group, std::span<const std::span<T>> parts) {
    if (group.size() == 1)
        return;
    Index size = 0;
    for (const auto& part : parts)
        size += Index(part.size());
    const MemoryScope scope(MemoryUse::messages);
    Buffer<T> all(size);
    T* place = all.begin();
    for (const auto& part : parts)
        place = std::copy(part.begin(), part.end(), place);
    group.all_reduce(all);
    const T* sums = all.begin();
    for (const auto& part : parts) {
        std::copy_n(sums, part.size(), part.begin());
        sums += part.size();
    }
}

} // namespace detail

/// Sums every gradient over the axes over which it is partial, and what several ranks hold a copy of (K/V heads that
/// query heads on several ranks read) over the holders. Once a step, after the last micro-batch: a second call would
/// count everything again.
///
/// Cost        an all-reduce of each gradient, of small ones together; copies go from holder to holder
/// Collective  over the mesh of the parameters, which is one
/// Throws      ArgumentError for a parameter that is listed twice, or is of another mesh
/// Order       bit-identical on every rank that holds an element
template <class S>
void synchronise_gradients(std::span<const ParameterView<S>> parameters) {
    using T = Accumulator<S>;
    detail::require_parameters(parameters, "synchronise_gradients");
    std::map<Axes, std::vector<std::span<T>>> small;
    for (const auto& parameter : parameters) {
        const std::span gradient(parameter.gradient.data, std::size_t(parameter.gradient.size()));
        const Axes summed_over = parameter.gradient_placement.partial;
        if (Index(gradient.size()) <= detail::small_gradient)
            small[summed_over].push_back(gradient);
        else
            parameter.mesh[summed_over].all_reduce(gradient);
    }
    for (const auto& [axes, gradients] : small)
        detail::all_reduce_together<T>(parameters.front().mesh[axes], gradients);
    for (const auto& parameter : parameters)
        sum_overlaps(parameter.spec(), parameter.gradient);
}

namespace detail {

template <class T>
double sum_of_squares(const Strided<T>& x, Index row, const Run& cols) {
    if (cols.stride == 1)
        return reigen::sum_of_squares(&x(row, cols.start), cols.count);
    double sum = 0;
    for (Index j = 0; j < cols.count; ++j)
        sum += double(x(row, cols[j])) * double(x(row, cols[j]));
    return sum;
}

/// Of the elements of which this rank is the first holder along the axes that split the parameter.
template <class S>
double owned_sum_of_squares(const ParameterView<S>& parameter) {
    double sum = 0;
    const std::vector<Run> owned_cols = parameter.owned_cols();
    for (const Run& rows : parameter.owned_rows())
        for (Index i = 0; i < rows.count; ++i)
            for (const Run& cols : owned_cols)
                sum += sum_of_squares(parameter.gradient, rows[i], cols);
    return sum;
}

} // namespace detail

/// Square root of the sum of the squares of all gradients, each element counted once whatever ranks hold it. After
/// `synchronise_gradients`.
///
/// Collective  over the parameters' mesh: one number per set of axes that splits parameters
/// Order       the same bits on every rank
template <class S>
double gradient_norm(std::span<const ParameterView<S>> parameters) {
    detail::require_parameters(parameters, "gradient_norm");
    std::map<Axes, double> squares;
    for (const auto& parameter : parameters)
        squares[split_axes(parameter.placement)] += detail::owned_sum_of_squares(parameter);
    double sum = 0;
    for (auto& [axes, mine] : squares) {
        parameters.front().mesh[axes].all_reduce(std::span(&mine, 1));
        sum += mine;
    }
    return std::sqrt(sum);
}

/// What brings a gradient of this norm down to `largest`; 1 where it is not above it, or where `largest` is 0: no
/// limit.
inline double clip_factor(double norm, double largest) {
    require(largest >= 0, "clip_factor: a largest norm of ", largest, "; want 0 (no limit) or more");
    return largest > 0 && norm > largest ? largest / norm : 1;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
