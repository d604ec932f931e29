#pragma once

#include <reigen/attention/audit.hpp>
#include <reigen/attention/ring.hpp>
#include <reigen/layout/block_view.hpp>
#include <reigen/nn/linear.hpp>
#include <reigen/nn/pass.hpp>
#include <reigen/nn/rotary.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

struct AttentionShape {
    Index width = 0;
    HeadGroups heads; // query heads, and the K/V heads that groups of them share
    Index head_dim = 0;
    Mask mask = Mask::causal();
};

/// Self-attention with rotary positions: q | k | v = x W_qkv + b in blocks of whole heads, y = attention W_out + b.
///
/// Heads are split over tp; where there are more ranks than K/V heads, each rank holds those its query heads read.
/// Sequences are split over cp by the layout of the pass: queries stay, keys and values go round.
///
/// Shapes      x, y [tokens, width] {Residual}
/// Cost        messages of its two linear layers over tp, and of `ring_attention` over cp. Keeps x, the rotated
///             q | k | v, the attention's output and one number for each query and head
/// Wire        as its two linear layers over tp; of keys and values over cp, as `AttentionOptionsOn`
/// Collective  over cp and tp
/// Source      Vaswani et al., "Attention is all you need", 2017; Ainslie et al., "GQA", 2023; Su et al., "RoFormer",
///             2021
template <class S, Placement Residual, WireType Wire = WireType::unchanged>
class Attention {
    using Projection = ColumnParallelLinear<S, Residual, Wire>;
    using Output = RowParallelLinear<S, Residual, Wire>;
    using Features = Sharded<S, features_over_tp>;

  public:
    using Tokens = Sharded<S, Residual>;

    struct Saved {
        typename Projection::Saved projection;
        Features qkv; // rotated
        typename Output::Saved output;
        Sharded<Accumulator<S>, features_over_tp> lse;
        Sequences sequences;
        std::shared_ptr<const RotaryTable<S>> rotary;
    };

    Attention(const Mesh& mesh, const std::string& name, const AttentionShape& shape, RotaryPositions<S> rotary,
              const Initial& projection, const Initial& output)
        : options_{.mask = shape.mask},
          blocks_(NamedBlocks::heads(shape.heads, shape.head_dim)),
          rotary_(std::move(rotary)),
          projection_(mesh, name + ".qkv", shape.width, blocks_.partition(mesh.size(tp)), projection),
          output_(mesh, name + ".out", blocks_.partition("q", mesh.size(tp)), shape.width, output) {
        require<ShapeError>(rotary_.head_dim() == shape.head_dim, name, ": heads of ", shape.head_dim,
                            ", rotary positions for heads of ", rotary_.head_dim());
        detail::check_mask(shape.mask, name.c_str());
    }

    Forward<Tokens, Saved> forward(Tokens x, const Pass& pass) const {
        require<ShapeError>(x.row_partition() == pass.sequences.rows(x.mesh(), Residual.rows),
                            "attention: the rows of x, ", shape(x.rows(), x.cols()), ", do not lie as the tokens of ",
                            pass.sequences.batch, ' ', to_string(pass.sequences.layout), " sequences of ",
                            pass.sequences.length, "; divide them by sequences.rows(mesh, ", to_string(Residual.rows),
                            ')');
        auto [qkv, saved_projection] = projection_.forward(std::move(x));
        auto table = rotary_.at(pass.sequences.positions(qkv.mesh()));
        rotary(queries_and_keys(qkv), *table, Rotation::forwards);
        const auto block = [&](const char* name) { return heads_of(std::as_const(qkv), name, pass.sequences); };
        auto [out, lse] = ring_attention(block("q"), block("k"), block("v"), options_);
        auto [y, saved_output] = output_.forward(std::move(out));
        return {std::move(y), Saved{std::move(saved_projection), std::move(qkv), std::move(saved_output),
                                    std::move(lse), pass.sequences, std::move(table)}};
    }

    /// Of the attention itself.
    AuditReport audit(const Saved& saved, const AuditOptions& options) const {
        const auto block = [&](const char* name) { return heads_of(saved.qkv, name, saved.sequences); };
        return audit_attention(block("q"), block("k"), block("v"), saved.output.x, saved.lse, options_, options);
    }

    Tokens backward(Saved saved, const Tokens& dy) {
        const Features dout = output_.backward(saved.output, dy);
        Features dqkv(saved.qkv.spec());
        const auto block = [&](auto& x, const char* name) { return heads_of(x, name, saved.sequences); };
        ring_attention_backward(block(saved.qkv, "q"), block(saved.qkv, "k"), block(saved.qkv, "v"), saved.output.x,
                                saved.lse, dout, block(dqkv, "q"), block(dqkv, "k"), block(dqkv, "v"), options_);
        rotary(queries_and_keys(dqkv), *saved.rotary, Rotation::backwards);
        return projection_.backward(std::move(saved.projection), dqkv);
    }

    std::vector<ParameterView<S>> parameters() {
        auto list = projection_.parameters();
        append(list, output_.parameters());
        return list;
    }

  private:
    template <class X>
    auto heads_of(X& qkv, const char* block, const Sequences& sequences) const {
        return heads(block_view(qkv, blocks_, block), sequences, rotary_.head_dim());
    }

    /// What turns with its position: the first two blocks, which lie one after the other.
    Strided<S> queries_and_keys(Features& qkv) const {
        const Index values = blocks_.place("v", qkv.mesh().size(tp), qkv.mesh().rank(tp)).first;
        return qkv.strided().block(0, 0, qkv.strided().rows, values);
    }

    AttentionOptionsOn<Wire> options_;
    NamedBlocks blocks_;
    RotaryPositions<S> rotary_;
    Projection projection_;
    Output output_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
