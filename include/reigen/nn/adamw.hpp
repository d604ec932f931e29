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
/// Throws      ArgumentError for options and rates that are no numbers or out of range, and a parameter listed twice
/// Source      Loshchilov, Hutter, "Decoupled weight decay regularization", ICLR 2019
template <class S>
class AdamW {
    using T = Accumulator<S>;
    static_assert(std::is_same_v<S, T>, "reigen: AdamW updates float and double weights");

  public:
    /// The layers that own the parameters must outlive it. A table that layers share is listed once.
    AdamW(std::vector<ParameterView<S>> parameters, const AdamWOptions& options)
        : parameters_(std::move(parameters)), options_(options) {
        check(options);
        detail::require_parameters<S>(parameters_, "AdamW");
        const MemoryScope scope(MemoryUse::optimizer);
        for (const auto& parameter : parameters_) {
            const Axes split = split_axes(parameter.placement);
            moments_.push_back(
                {Buffer<T>::zeros(parameter.value.size(), split), Buffer<T>::zeros(parameter.value.size(), split)});
        }
    }

    /// One update from synchronised gradients, each multiplied by `gradient_factor` (see `clip_factor`).
    void step(double learning_rate, double gradient_factor = 1) {
        require(is_size(learning_rate) && is_size(gradient_factor), "AdamW: learning rate ", learning_rate,
                ", gradient factor ", gradient_factor, "; want 0 or more");
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
    static bool is_size(double value) { return std::isfinite(value) && value >= 0; }

    static void check(const AdamWOptions& o) {
        const auto keeps = [](double beta) { return beta >= 0 && beta < 1; };
        require(keeps(o.beta1) && keeps(o.beta2), "AdamW: beta1 ", o.beta1, ", beta2 ", o.beta2,
                "; want both in [0, 1)");
        require(std::isfinite(o.epsilon) && o.epsilon > 0, "AdamW: epsilon ", o.epsilon, "; want more than 0");
        require(is_size(o.weight_decay), "AdamW: weight decay ", o.weight_decay, "; want 0 or more");
    }

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
