#pragma once

#include <reigen/core/hash.hpp>
#include <reigen/core/memory.hpp>
#include <reigen/core/random.hpp>
#include <reigen/layout/parameter.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How a parameter starts: normal numbers that depend on the seed, the parameter's name and the global index alone;
/// the mean everywhere where the deviation is 0.
struct Initial {
    double mean = 0;
    double deviation = 0;
    std::uint64_t seed = 0;
};

/// A tensor's number among the random streams: the hash of its name.
constexpr std::uint64_t tensor_number(std::string_view name) {
    return (detail::Hash() << name).value();
}

/// A parameter and its gradient, which starts at zero and to which every backward pass adds.
///
/// The gradient is divided as the parameter is, and partial over `SummedOver`: `synchronise_gradients` sums it there
/// once a step.
template <class S, Placement Where, Axes SummedOver>
class Parameter {
  public:
    using Value = Sharded<S, Where>;
    using Gradient = Sharded<Accumulator<S>, Where | partial(SummedOver)>;

    Parameter(const Mesh& mesh, std::string name, const Extent& rows, const Extent& cols, const Initial& initial)
        : name_(std::move(name)),
          value_(initial_value(mesh, name_, rows, cols, initial)),
          gradient_(zero_gradient(mesh, rows, cols)) {}

    const std::string& name() const { return name_; }
    Value& value() { return value_; }
    const Value& value() const { return value_; }
    Gradient& gradient() { return gradient_; }
    const Gradient& gradient() const { return gradient_; }

    ParameterView<S> view() { return parameter_view(name_, value_, gradient_); }

  private:
    static Value initial_value(const Mesh& mesh, const std::string& name, const Extent& rows, const Extent& cols,
                               const Initial& initial) {
        require(std::isfinite(initial.mean) && std::isfinite(initial.deviation) && initial.deviation >= 0, "parameter ",
                name, ": mean ", initial.mean, ", deviation ", initial.deviation, "; want numbers, the deviation >= 0");
        const MemoryScope scope(MemoryUse::weights);
        if (initial.deviation == 0)
            return Value::from_global(mesh, rows, cols, [&](Index, Index) { return initial.mean; });
        const RandomStream stream(initial.seed, tensor_number(name));
        const Index width = cols.over(mesh, Where.cols).size();
        return Value::from_global(mesh, rows, cols, [&](Index i, Index j) {
            return initial.mean + initial.deviation * stream.normal(i * width + j);
        });
    }

    static Gradient zero_gradient(const Mesh& mesh, const Extent& rows, const Extent& cols) {
        const MemoryScope scope(MemoryUse::gradients);
        return Gradient::zeros(mesh, rows, cols);
    }

    std::string name_;
    Value value_;
    Gradient gradient_;
};

/// What a layer lists that has one parameter always and another one where it is wanted: weight and bias, scale and shift.
template <class S, Placement Always, Axes AlwaysOver, Placement Wanted, Axes WantedOver>
std::vector<ParameterView<S>> views_of(Parameter<S, Always, AlwaysOver>& always,
                                       std::optional<Parameter<S, Wanted, WantedOver>>& where_wanted) {
    std::vector<ParameterView<S>> views = {always.view()};
    if (where_wanted)
        views.push_back(where_wanted->view());
    return views;
}

/// Lists one after the other.
template <class S>
void append(std::vector<ParameterView<S>>& list, std::vector<ParameterView<S>> more) {
    for (auto& parameter : more)
        list.push_back(std::move(parameter));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
