#pragma once

#include <reigen/kernel/norm.hpp>
#include <reigen/matmul/checks.hpp>
#include <reigen/nn/parameter.hpp>
#include <reigen/nn/residual.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

enum class NormKind { layer_norm, rms_norm };

/// y = (x - mean) / sqrt(variance + epsilon) * scale + shift for every token; RMSNorm has no mean and no shift.
///
/// Shapes      x, y [tokens, width] {Residual}; scale, shift [1, width], on every rank
/// Collective  no; each rank's gradients count the tokens it holds, so they are partial over the axes of its rows
/// Source      Ba, Kiros, Hinton, "Layer normalization", 2016; Zhang, Sennrich, "Root mean square layer
///             normalization", NeurIPS 2019
template <class S, Placement Residual>
class Norm {
    static_assert(checked_residual<Residual>);
    using RowParameter = Parameter<S, replicated, Residual.rows>;

  public:
    using Tokens = Sharded<S, Residual>;

    struct Saved {
        Tokens x; // the residual stream goes on from here
        Buffer<S> mean;
        Buffer<S> inverse_deviation;
    };

    Norm(const Mesh& mesh, const std::string& name, Index width, NormKind kind, double epsilon = 1e-5)
        : epsilon_(S(epsilon)), scale_(mesh, name + ".scale", 1, width, {.mean = 1}) {
        require(width >= 1 && std::isfinite(epsilon) && epsilon >= 0, name, ": width ", width, ", epsilon ", epsilon,
                "; want at least 1, and 0 or more");
        if (kind == NormKind::layer_norm)
            shift_.emplace(mesh, name + ".shift", 1, width, Initial{});
    }

    Forward<Tokens, Saved> forward(Tokens x) const {
        require_width(x);
        Tokens y(x.spec());
        const Index rows = x.strided().rows;
        Saved saved{std::move(x), Buffer<S>(shift_ ? rows : 0, Residual.rows), Buffer<S>(rows, Residual.rows)};
        normalise<S>(std::as_const(saved.x).strided(), numbers(), y.strided(),
                     {saved.mean.data(), saved.inverse_deviation.data()});
        return {std::move(y), std::move(saved)};
    }

    /// Adds the gradient of x to `dx`, which is where the gradient of the residual stream itself already is.
    void backward_add(Saved saved, const Tokens& dy, Tokens& dx) {
        detail::require_alike(saved.x.spec(), dy.spec(), scale_.name().c_str());
        detail::require_alike(saved.x.spec(), dx.spec(), scale_.name().c_str());
        normalise_backward<S>(std::as_const(saved.x).strided(), numbers(),
                              {saved.mean.data(), saved.inverse_deviation.data()}, dy.strided(), dx.strided(),
                              scale_.gradient().data(), shift_ ? shift_->gradient().data() : nullptr);
    }

    Tokens backward(Saved saved, const Tokens& dy) {
        detail::require_alike(saved.x.spec(), dy.spec(), scale_.name().c_str());
        Tokens dx(dy.spec());
        dx.local().setZero();
        backward_add(std::move(saved), dy, dx);
        return dx;
    }

    std::vector<ParameterView<S>> parameters() { return views_of(scale_, shift_); }

  private:
    NormParameters<S> numbers() const {
        return {scale_.value().data(), shift_ ? shift_->value().data() : nullptr, epsilon_, shift_.has_value()};
    }

    void require_width(const Tokens& x) const {
        require<ShapeError>(x.cols() == scale_.value().cols(), scale_.name(), ": x is ", shape(x.rows(), x.cols()),
                            ", the scale has ", scale_.value().cols(), " elements");
    }

    S epsilon_;
    RowParameter scale_;
    std::optional<RowParameter> shift_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
