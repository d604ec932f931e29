#pragma once

#include <reigen/kernel/adamw.hpp>
#include <reigen/layout/parameter.hpp>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

struct AdamWOptions {
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0; // of matrices; vectors (biases, norms) are not decayed
};

/// Adam with decoupled weight decay. Each rank updates what it holds; copies stay bit-identical because their gradients
/// are.
///
/// Cost        two numbers of state for each element this rank holds
/// Collective  no
/// Source      Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019
template <class S>
class AdamW {
    using T = Accumulator<S>;
    static_assert(std::is_same_v<S, T>, "reigen: AdamW updates float and double weights");

  public:
    /// The layers that own the parameters must outlive it.
    AdamW(std::vector<ParameterView<S>> parameters, const AdamWOptions& options)
        : parameters_(std::move(parameters)), options_(options) {
        const MemoryScope scope(MemoryUse::optimizer);
        for (const auto& parameter : parameters_) {
            const Axes split = split_axes(parameter.placement);
            moments_.push_back(
                {Buffer<T>::zeros(parameter.value.size(), split), Buffer<T>::zeros(parameter.value.size(), split)});
        }
    }

    /// One update from synchronised gradients, each multiplied by `gradient_factor` (see `clip_factor`).
    void step(double learning_rate, double gradient_factor = 1) {
        ++steps_;
        for (std::size_t p = 0; p < parameters_.size(); ++p) {
            const auto& [value, gradient] = std::pair(parameters_[p].value, parameters_[p].gradient);
            adamw_update(value.data, gradient.data, moments_[p].first.data(), moments_[p].second.data(), value.size(),
                         coefficients(learning_rate, gradient_factor, parameters_[p].rows > 1));
        }
    }

    Index steps() const { return steps_; }
    std::span<const ParameterView<S>> parameters() const { return parameters_; }

  private:
    struct Moments {
        Buffer<T> first, second;
    };

    AdamWCoefficients coefficients(double learning_rate, double gradient_factor, bool decays) const {
        return {.learning_rate = learning_rate,
                .beta1 = options_.beta1,
                .beta2 = options_.beta2,
                .epsilon = options_.epsilon,
                .weight_decay = decays ? options_.weight_decay : 0,
                .correction1 = 1 - std::pow(options_.beta1, double(steps_)),
                .correction2 = 1 - std::pow(options_.beta2, double(steps_)),
                .gradient_factor = gradient_factor};
    }

    std::vector<ParameterView<S>> parameters_;
    AdamWOptions options_;
    std::vector<Moments> moments_;
    Index steps_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
