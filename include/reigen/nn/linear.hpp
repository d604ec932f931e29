#pragma once

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/all_gather_matmul.hpp>
#include <reigen/matmul/audit.hpp>
#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/matmul_reduce_scatter.hpp>
#include <reigen/matmul/sums.hpp>
#include <reigen/nn/parameter.hpp>
#include <reigen/nn/residual.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Tokens whose features are split over tp: what lies between a column- and a row-parallel layer.
inline constexpr Placement features_over_tp = {token_axes, tp, Axes::none};

/// The residual stream as products want it: all of its tokens on every rank of tp. A gather under sequence
/// parallelism, with one rank too rounded for the wire; x itself otherwise.
template <WireType Wire = WireType::unchanged, class S, Placement Residual>
decltype(auto) gathered(const Sharded<S, Residual>& x) {
    if constexpr (Residual == residual_on_every_rank)
        return (x);
    else
        return detail::gathered_at_once<residual_on_every_rank, Wire>(x);
}

namespace detail {

/// The type in which tokens of the residual stream travel over tp: they do not where every rank has all of them.
template <Placement Residual, WireType Wire>
inline constexpr WireType tokens_wire = Residual == residual_on_every_rank ? WireType::unchanged : Wire;

/// The same tokens in the residual stream as in a matrix of features: thrown on every rank, before the first message.
inline void require_same_tokens(const ShardSpec& residual, const ShardSpec& features, const std::string& layer) {
    require_same_mesh(residual, features, layer.c_str());
    require<ShapeError>(residual.rows() == features.rows(), layer, ": ", shape(residual.rows(), residual.cols()),
                        " of the residual stream and ", shape(features.rows(), features.cols()),
                        " of features: the tokens differ");
    require_equal(rearranged(residual.row_partition, residual.mesh, residual.placement.rows, features.placement.rows),
                  features.row_partition, layer.c_str(), "tokens of the residual stream", "tokens of the features");
}

/// The sum over tp of what each rank makes of its features, in the residual stream.
template <Placement Residual, ShardedLike X, IsPlaced W>
auto summed_product(const X& x, const W& w) {
    if constexpr (Residual == residual_on_every_rank)
        return sum(matmul(x, w));
    else
        return matmul_reduce_scatter<Residual>(x, w);
}

} // namespace detail

/// y = x W + b, the features of y split over tp.
///
/// Shapes      x [tokens, in] {Residual}; W [in, out] { ; tp; }; b [1, out] { ; tp; }; y [tokens, out] {dp|cp; tp; }
/// Cost        2 tokens in out flop over tp ranks, twice that backwards. Forward: an all-gather of x where the residual
///             stream is split over tp, under the product. Backward: the all-reduce of dx, under the product for dW; where
///             the stream is split a reduce-scatter, and x is gathered again under the product for dx, so that only this
///             rank's tokens are kept
/// Wire        tokens of x on their way, where the stream is split: y and dW are bitwise those of x rounded to it, dx
///             is not rounded. With bf16, |y' - y| <= 2^-8 |x| |W| and |dW' - dW| <= 2^-8 |x^T| |dy|, see `WireType`
/// Collective  over tp
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class ColumnParallelLinear {
    static_assert(checked_residual<Residual>);
    static constexpr WireType wire = detail::tokens_wire<Residual, Wire>;

  public:
    using X = Sharded<S, Residual>;
    using Y = Sharded<S, features_over_tp>;

    struct Saved {
        X x;
    };

    /// `out` may be how the features are divided, for instance by named blocks.
    ColumnParallelLinear(const Mesh& mesh, const std::string& name, Index in, const Extent& out, const Initial& initial,
                         bool with_bias = true)
        : weight_(mesh, name + ".weight", in, out, initial) {
        if (with_bias)
            bias_.emplace(mesh, name + ".bias", 1, out, Initial{});
    }

    Forward<Y, Saved> forward(X x) const {
        detail::require_factors(x.spec(), weight_.value().spec(), weight_.name().c_str());
        Y y = all_gather_matmul<residual_on_every_rank, wire>(x, weight_.value());
        if (bias_)
            y = add_bias(std::move(y), bias_->value());
        return {std::move(y), Saved{std::move(x)}};
    }

    /// `audit_product` of `y = forward(x).y`, before backward takes what was saved. Collective over the whole mesh.
    AuditReport audit(const Saved& saved, const Y& y, const AuditOptions& options) const {
        decltype(auto) x = gathered<wire>(saved.x);
        return bias_ ? audit_product(x, weight_.value(), y, bias_->value(), options)
                     : audit_product(x, weight_.value(), y, options);
    }

    X backward(Saved saved, const Y& dy) {
        detail::require_same_tokens(saved.x.spec(), dy.spec(), weight_.name());
        detail::require_factors(dy.spec(), transpose(weight_.value().spec()), weight_.name().c_str());
        auto x = start_redistribute<residual_on_every_rank, wire>(std::move(saved.x));
        auto dx = start_redistribute<Residual>(input_gradient(dy, weight_.value()));
        matmul_into(S(1), transpose(x.wait()), dy, S(1), weight_.gradient());
        if (bias_)
            column_sums_into(dy, S(1), bias_->gradient());
        return dx.wait();
    }

    std::vector<ParameterView<S>> parameters() { return views_of(weight_, bias_); }

  private:
    Parameter<S, split_cols(tp), token_axes> weight_;
    std::optional<Parameter<S, split_cols(tp), token_axes>> bias_;
};

/// y = x W + b, the features of x split over tp: a sum over tp, to which the bias is added once.
///
/// Shapes      x [tokens, in] {dp|cp; tp; }; W [in, out] {tp; ; }; b [1, out] on every rank; y [tokens, out] {Residual}
/// Cost        2 tokens in out flop over tp ranks, twice that backwards. Forward: an all-reduce of y; where the residual
///             stream is split over tp a reduce-scatter, and an all-gather of dy backwards, both under products
/// Wire        tokens of dy on their way, where the stream is split: dx and dW are bitwise those of dy rounded to it, y
///             and db are not rounded. With bf16, |dx' - dx| <= 2^-8 |dy| |W^T| and |dW' - dW| <= 2^-8 |x^T| |dy|, see
///             `WireType`
/// Collective  over tp
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class RowParallelLinear {
    static_assert(checked_residual<Residual>);
    static constexpr WireType wire = detail::tokens_wire<Residual, Wire>;

  public:
    using X = Sharded<S, features_over_tp>;
    using Y = Sharded<S, Residual>;

    struct Saved {
        X x;
    };

    /// `in` may be how the features are divided, for instance by whole heads.
    RowParallelLinear(const Mesh& mesh, const std::string& name, const Extent& in, Index out, const Initial& initial,
                      bool with_bias = true)
        : weight_(mesh, name + ".weight", in, out, initial) {
        if (with_bias)
            bias_.emplace(mesh, name + ".bias", 1, out, Initial{});
    }

    Forward<Y, Saved> forward(X x) const {
        Y y = detail::summed_product<Residual>(x, weight_.value());
        if (bias_)
            y = add_bias(std::move(y), bias_->value());
        return {std::move(y), Saved{std::move(x)}};
    }

    /// `audit_product` of `y = forward(x).y`, before backward takes what was saved. Collective over the whole mesh.
    AuditReport audit(const Saved& saved, const Y& y, const AuditOptions& options) const {
        const X& x = saved.x;
        return bias_ ? audit_product(x, weight_.value(), y, bias_->value(), options)
                     : audit_product(x, weight_.value(), y, options);
    }

    X backward(const Saved& saved, const Y& dy) {
        detail::require_same_tokens(dy.spec(), saved.x.spec(), weight_.name());
        detail::require_factors(dy.spec(), transpose(weight_.value().spec()), weight_.name().c_str());
        if (bias_)
            column_sums_into(dy, S(1), bias_->gradient());
        if constexpr (Residual == residual_on_every_rank) {
            matmul_into(S(1), transpose(saved.x), dy, S(1), weight_.gradient());
            return input_gradient(dy, weight_.value());
        } else {
            auto [dx, whole_dy] =
                all_gather_matmul_keeping<residual_on_every_rank, wire>(dy, transpose(weight_.value()));
            matmul_into(S(1), transpose(saved.x), whole_dy, S(1), weight_.gradient());
            return std::move(dx);
        }
    }

    std::vector<ParameterView<S>> parameters() { return views_of(weight_, bias_); }

  private:
    Parameter<S, split_rows(tp), token_axes> weight_;
    std::optional<Parameter<S, replicated, Residual.rows>> bias_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
