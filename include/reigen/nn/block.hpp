#pragma once

#include <reigen/matmul/elementwise.hpp>
#include <reigen/nn/attention.hpp>
#include <reigen/nn/dropout.hpp>
#include <reigen/nn/mlp.hpp>
#include <reigen/nn/norm.hpp>

#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How the matrices of a block start: those that write into the residual stream usually smaller, since all of them add
/// up there.
struct BlockInitial {
    Initial in;       // q | k | v, and the MLP's first
    Initial residual; // the attention's output, and the MLP's second
};

struct BlockOptions {
    AttentionShape attention;
    Index hidden = 0;
    MlpKind mlp = MlpKind::gelu;
    NormKind norm = NormKind::layer_norm;
    double norm_epsilon = 1e-5;
    double dropout = 0;
    std::uint64_t seed = 0; // of dropout
};

/// A transformer block with the norms first: m = x + drop(attention(norm(x))), y = m + drop(mlp(norm(m))).
///
/// Shapes      x, y [tokens, width] {Residual}
/// Cost        that of its parts; the residual stream itself is kept once, by the norms that read it
/// Wire        as its parts. With bf16 half of float's bytes of tokens, keys and values travel, a quarter of double's;
///             sums, and the gradients of keys and values, in their own type
/// Collective  over cp and tp
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class TransformerBlock {
  public:
    using Tokens = Sharded<S, Residual>;

    struct Saved {
        typename Norm<S, Residual>::Saved attention_norm;
        typename Attention<S, Residual, Wire>::Saved attention;
        typename Norm<S, Residual>::Saved mlp_norm;
        typename Mlp<S, Residual, Wire>::Saved mlp;
        Pass pass;
    };

    TransformerBlock(const Mesh& mesh, const std::string& name, const BlockOptions& options, RotaryPositions<S> rotary,
                     const BlockInitial& initial)
        : attention_norm_(mesh, name + ".attention_norm", options.attention.width, options.norm, options.norm_epsilon),
          attention_(mesh, name + ".attention", options.attention, std::move(rotary), initial.in, initial.residual),
          attention_dropout_(name + ".attention", options.dropout, options.seed),
          mlp_norm_(mesh, name + ".mlp_norm", options.attention.width, options.norm, options.norm_epsilon),
          mlp_(mesh, name + ".mlp", options.attention.width, options.hidden, options.mlp, initial.in, initial.residual),
          mlp_dropout_(name + ".mlp", options.dropout, options.seed) {}

    Forward<Tokens, Saved> forward(Tokens x, const Pass& pass) const {
        auto [normed_x, saved_attention_norm] = attention_norm_.forward(std::move(x));
        auto [attended, saved_attention] = attention_.forward(std::move(normed_x), pass);
        attention_dropout_.apply(attended, pass);
        auto [normed_m, saved_mlp_norm] = mlp_norm_.forward(add(std::move(attended), saved_attention_norm.x));
        auto [y, saved_mlp] = mlp_.forward(std::move(normed_m));
        mlp_dropout_.apply(y, pass);
        return {add(std::move(y), saved_mlp_norm.x), Saved{std::move(saved_attention_norm), std::move(saved_attention),
                                                           std::move(saved_mlp_norm), std::move(saved_mlp), pass}};
    }

    /// What `forward` saved against a second computation in double, of some rows. Collective over the whole mesh.
    std::vector<NamedAudit> audit(const Saved& saved, const AuditOptions& options) const {
        return {{"attention", attention_.audit(saved.attention, options)}, {"mlp.up", mlp_.audit(saved.mlp, options)}};
    }

    Tokens backward(Saved saved, Tokens dy) {
        const Pass& pass = saved.pass;
        auto dnormed_m =
            through(mlp_dropout_, dy, pass, [&](const Tokens& d) { return mlp_.backward(std::move(saved.mlp), d); });
        mlp_norm_.backward_add(std::move(saved.mlp_norm), dnormed_m, dy);
        auto dnormed_x = through(attention_dropout_, dy, pass,
                                 [&](const Tokens& d) { return attention_.backward(std::move(saved.attention), d); });
        attention_norm_.backward_add(std::move(saved.attention_norm), dnormed_x, dy);
        return dy;
    }

    std::vector<ParameterView<S>> parameters() {
        auto list = attention_norm_.parameters();
        append(list, attention_.parameters());
        append(list, mlp_norm_.parameters());
        append(list, mlp_.parameters());
        return list;
    }

  private:
    /// A part's gradient behind its dropout. The residual's own gradient stays, so a dropped one is a copy.
    template <class Backward>
    static Tokens through(const Dropout& dropout, const Tokens& dy, const Pass& pass, Backward backward) {
        if (!dropout.acts(pass))
            return backward(dy);
        Tokens dropped = dy.clone();
        dropout.apply(dropped, pass);
        return backward(dropped);
    }

    Norm<S, Residual> attention_norm_;
    Attention<S, Residual, Wire> attention_;
    Dropout attention_dropout_;
    Norm<S, Residual> mlp_norm_;
    Mlp<S, Residual, Wire> mlp_;
    Dropout mlp_dropout_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
