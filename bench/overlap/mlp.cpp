#include "overlap/work.hpp"

#include <reigen/kernel/activation.hpp>
#include <reigen/nn/mlp.hpp>

#include <cmath>

namespace overlap {
namespace {

using namespace reigen;

float number(Index i, Index j) {
    return std::sin(float(i) + 0.7F * float(j)) / 16;
}

template <Placement Where>
Sharded<float, Where> numbers(const Mesh& mesh, Index rows, Index cols) {
    return Sharded<float, Where>::from_global(mesh, rows, cols, number);
}

/// The library's MLP, forward and backward.
template <Placement Residual>
class MlpStep {
  public:
    MlpStep(const Mesh& mesh, const MlpSizes& sizes)
        : x_(numbers<Residual>(mesh, sizes.tokens, sizes.width)),
          mlp_(mesh, "mlp", sizes.width, sizes.hidden, MlpKind::gelu, {.deviation = 0.02}, {.deviation = 0.02}) {}

    void run() {
        auto [y, saved] = mlp_.forward(x_.clone());
        mlp_.backward(std::move(saved), y);
    }

  private:
    Sharded<float, Residual> x_;
    Mlp<float, Residual> mlp_;
};

/// The same from products and redistributions, one after the other.
template <Placement Residual>
class PlainMlpStep {
  public:
    PlainMlpStep(const Mesh& mesh, const MlpSizes& sizes)
        : x_(numbers<Residual>(mesh, sizes.tokens, sizes.width)),
          up_(numbers<split_cols(tp)>(mesh, sizes.width, sizes.hidden)),
          up_bias_(numbers<split_cols(tp)>(mesh, 1, sizes.hidden)),
          down_(numbers<split_rows(tp)>(mesh, sizes.hidden, sizes.width)),
          down_bias_(numbers<replicated>(mesh, 1, sizes.width)),
          up_gradient_(numbers < split_cols(tp) | partial(token_axes) > (mesh, sizes.width, sizes.hidden)),
          up_bias_gradient_(numbers < split_cols(tp) | partial(token_axes) > (mesh, 1, sizes.hidden)),
          down_gradient_(numbers < split_rows(tp) | partial(token_axes) > (mesh, sizes.hidden, sizes.width)),
          down_bias_gradient_(numbers<partial(Residual.rows)>(mesh, 1, sizes.width)) {}

    void run() {
        auto inner = add_bias(matmul(gathered(x_), up_), up_bias_);
        const auto y = add_bias(redistribute<Residual>(matmul(activation(inner), down_)), down_bias_);
        column_sums_into(y, 1, down_bias_gradient_);
        decltype(auto) dy = gathered(y);
        matmul_into(1, transpose(activation(inner)), dy, 1, down_gradient_);
        const auto dhidden = input_gradient(dy, down_);
        gelu_backward(inner.data(), dhidden.data(), inner.data(), inner.strided().size());
        const auto dx = redistribute<Residual>(input_gradient(inner, up_));
        matmul_into(1, transpose(gathered(x_)), inner, 1, up_gradient_);
        column_sums_into(inner, 1, up_bias_gradient_);
    }

  private:
    using Features = Sharded<float, features_over_tp>;

    static Features activation(const Features& inner) {
        Features hidden(inner.spec());
        gelu(inner.data(), hidden.data(), inner.strided().size());
        return hidden;
    }

    Sharded<float, Residual> x_;
    Sharded<float, split_cols(tp)> up_, up_bias_;
    Sharded<float, split_rows(tp)> down_;
    Sharded<float, replicated> down_bias_;
    Sharded<float, split_cols(tp) | partial(token_axes)> up_gradient_, up_bias_gradient_;
    Sharded<float, split_rows(tp) | partial(token_axes)> down_gradient_;
    Sharded<float, partial(Residual.rows)> down_bias_gradient_;
};

template <Placement Residual>
class MlpWork final : public Work {
  public:
    MlpWork(const Mesh& mesh, const MlpSizes& sizes)
        : overlapped_(mesh, sizes), plain_(mesh, sizes), share_({}, share_of(mesh, sizes)), whole_({}, sizes) {}

    void overlapped() override { overlapped_.run(); }
    void plain() override { plain_.run(); }
    void computing() override { share_.run(); }
    void whole() override { whole_.run(); }

  private:
    /// All tokens, this rank's hidden features: its products do not depend on where the residual stream is.
    static MlpSizes share_of(const Mesh& mesh, MlpSizes sizes) {
        sizes.hidden = balanced(mesh, tp, sizes.hidden).count(mesh.rank(tp));
        return sizes;
    }

    MlpStep<Residual> overlapped_;
    PlainMlpStep<Residual> plain_;
    MlpStep<residual_on_every_rank> share_, whole_;
};

template <Placement Residual>
Case mlp_case(const char* residual, const MlpSizes& sizes, int ranks) {
    return case_over<MlpWork<Residual>>(tp,
                                        concat("mlp/tp:", ranks, "/residual:", residual, "/tokens:", sizes.tokens,
                                               "/width:", sizes.width, "/hidden:", sizes.hidden),
                                        sizes);
}

} // namespace

std::vector<Case> mlp_cases(const MlpSizes& sizes, int ranks) {
    return {mlp_case<residual_on_every_rank>("on_every_rank", sizes, ranks),
            mlp_case<residual_over_tp>("over_tp", sizes, ranks)};
}

} // namespace overlap
