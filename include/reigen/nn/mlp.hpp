#pragma once

#include <reigen/kernel/activation.hpp>
#include <reigen/layout/blocks.hpp>
#include <reigen/nn/linear.hpp>

#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

enum class MlpKind { gelu, swiglu };

/// y = gelu(x W_up + b) W_down + b, or y = (silu(gate) * up) W_down + b with gate | up = x W_up + b in named blocks.
///
/// Shapes      x, y [tokens, width] {Residual}; hidden features split over tp
/// Cost        4 tokens width hidden flop (SwiGLU 6) over tp ranks, twice that backwards; messages as its two linear
///             layers. Keeps x and what the activation reads; its result is computed again backwards
/// Wire        as its two linear layers
/// Collective  over tp
/// Source      Hendrycks, Gimpel, "Gaussian error linear units", 2016 (tanh form); Shazeer, "GLU variants improve
///             transformer", 2020
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class Mlp {
    using Up = ColumnParallelLinear<S, Residual, Wire>;
    using Down = RowParallelLinear<S, Residual, Wire>;
    using Features = Sharded<S, features_over_tp>;

  public:
    using Tokens = Sharded<S, Residual>;

    struct Saved {
        typename Up::Saved up;
        Features inner; // what the activation reads
    };

    Mlp(const Mesh& mesh, const std::string& name, Index width, Index hidden, MlpKind kind, const Initial& up,
        const Initial& down)
        : kind_(kind),
          hidden_(balanced(mesh, tp, hidden)),
          up_(mesh, name + ".up", width, inner_features(mesh, kind, hidden), up),
          down_(mesh, name + ".down", hidden_, width, down) {}

    Forward<Tokens, Saved> forward(Tokens x) const {
        auto [inner, saved_up] = up_.forward(std::move(x));
        auto [y, saved_down] = down_.forward(activation(inner));
        return {std::move(y), Saved{std::move(saved_up), std::move(inner)}};
    }

    /// Of the first product; what the second reads is not kept.
    AuditReport audit(const Saved& saved, const AuditOptions& options) const {
        return up_.audit(saved.up, saved.inner, options);
    }

    Tokens backward(Saved saved, const Tokens& dy) {
        const Features dhidden = down_.backward({activation(saved.inner)}, dy);
        activation_backward(saved.inner, dhidden);
        return up_.backward(std::move(saved.up), saved.inner);
    }

    std::vector<ParameterView<S>> parameters() {
        auto list = up_.parameters();
        append(list, down_.parameters());
        return list;
    }

  private:
    static Partition inner_features(const Mesh& mesh, MlpKind kind, Index hidden) {
        if (kind == MlpKind::gelu)
            return balanced(mesh, tp, hidden);
        return NamedBlocks({{"gate", hidden}, {"up", hidden}}).partition(mesh.size(tp));
    }

    Features activation(const Features& inner) const {
        Features hidden(inner.mesh(), inner.row_partition(), hidden_);
        const Strided<const S> from = inner.strided();
        const Strided<S> to = hidden.strided();
        if (kind_ == MlpKind::gelu)
            gelu(from.data, to.data, to.size());
        else
            for (Index i = 0; i < to.rows; ++i)
                swiglu(from.row(i), from.row(i) + to.cols, to.row(i), to.cols);
        return hidden;
    }

    /// The gradient takes the place of what the activation read.
    void activation_backward(Features& inner, const Features& dhidden) const {
        const Strided<S> x = inner.strided();
        const Strided<const S> dy = dhidden.strided();
        if (kind_ == MlpKind::gelu)
            gelu_backward(x.data, dy.data, x.data, x.size());
        else
            for (Index i = 0; i < x.rows; ++i)
                swiglu_backward(x.row(i), x.row(i) + dy.cols, dy.row(i), x.row(i), x.row(i) + dy.cols, dy.cols);
    }

    MlpKind kind_;
    Partition hidden_;
    Up up_;
    Down down_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
