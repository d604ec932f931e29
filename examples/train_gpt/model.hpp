#pragma once

#include <reigen/nn/block.hpp>
#include <reigen/nn/embedding.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace train_gpt {

using reigen::Index;

/// A GPT: embedding, blocks with the norms first and rotary positions, a last norm, and a head.
struct GptConfig {
    Index vocabulary = 256;
    Index layers = 4;
    Index width = 256;
    Index heads = 8;
    Index kv_heads = 4;
    Index head_dim = 32;
    Index hidden = 1024;
    reigen::MlpKind mlp = reigen::MlpKind::gelu;
    reigen::NormKind norm = reigen::NormKind::layer_norm;
    reigen::Mask mask = reigen::Mask::causal();
    double dropout = 0;
    bool tied = false; // the head reads the embedding's table
    std::uint64_t seed = 1;
};

/// The model on a mesh, in a placement of its residual stream: the same numbers on each. Nothing here names a rank.
/// Tokens, keys and values travel in the wire's type, as `TransformerBlock` says.
template <class S, reigen::Placement Residual, reigen::WireType Wire = reigen::WireType::unchanged>
class Gpt {
    using Tokens = reigen::Sharded<S, Residual>;
    using Embedding = reigen::VocabParallelEmbedding<S, Residual, Wire>;
    using Block = reigen::TransformerBlock<S, Residual, Wire>;
    using Norm = reigen::Norm<S, Residual>;
    using Head = reigen::VocabParallelHead<S, Residual, Wire>;

  public:
    using Logits = typename Head::Logits;

    struct Saved {
        typename Embedding::Saved embedding;
        std::vector<typename Block::Saved> blocks;
        typename Norm::Saved norm;
        typename Head::Saved head;
        reigen::Pass pass;
    };

    Gpt(const reigen::Mesh& mesh, const GptConfig& config)
        : tied_(config.tied),
          embedding_(mesh, "embedding", config.vocabulary, config.width, initial(config)),
          embedding_dropout_("embedding", config.dropout, config.seed),
          norm_(mesh, "norm", config.width, config.norm),
          head_(tied_ ? Head(embedding_.table())
                      : Head(mesh, "head", config.vocabulary, config.width, initial(config))) {
        const reigen::RotaryPositions<S> rotary(config.head_dim);
        for (Index layer = 0; layer < config.layers; ++layer)
            blocks_.push_back(std::make_unique<Block>(mesh, "blocks." + std::to_string(layer), block_options(config),
                                                      rotary, block_initial(config)));
    }

    /// `ids` are those of the rows of dp|cp that this rank holds.
    reigen::Forward<Logits, Saved> forward(std::span<const std::int32_t> ids, const reigen::Pass& pass) const {
        Saved saved;
        saved.pass = pass;
        Tokens x = taken(embedding_.forward(ids, pass), saved.embedding);
        embedding_dropout_.apply(x, pass);
        for (const auto& block : blocks_)
            x = taken(block->forward(std::move(x), pass), saved.blocks.emplace_back());
        Logits logits = taken(head_.forward(taken(norm_.forward(std::move(x)), saved.norm)), saved.head);
        return {std::move(logits), std::move(saved)};
    }

    /// Some rows of all attentions and of products, recomputed. Collective over the whole mesh.
    std::vector<reigen::NamedAudit> audit(const Saved& saved, const Logits& logits,
                                          const reigen::AuditOptions& options) const {
        std::vector<reigen::NamedAudit> list;
        for (std::size_t layer = 0; layer < blocks_.size(); ++layer)
            for (auto& [name, report] : blocks_[layer]->audit(saved.blocks[layer], options))
                list.push_back({reigen::concat("blocks.", layer, '.', name), report});
        list.push_back({"head", head_.audit(saved.head, logits, options)});
        return list;
    }

    /// Adds to the gradients of all parameters.
    void backward(Saved saved, const Logits& dlogits) {
        Tokens dx = norm_.backward(std::move(saved.norm), head_.backward(std::move(saved.head), dlogits));
        for (std::size_t layer = blocks_.size(); layer-- > 0;) {
            dx = blocks_[layer]->backward(std::move(saved.blocks.back()), std::move(dx));
            saved.blocks.pop_back();
        }
        embedding_dropout_.apply(dx, saved.pass);
        embedding_.backward(std::move(saved.embedding), dx);
    }

    std::vector<reigen::ParameterView<S>> parameters() {
        auto list = embedding_.parameters();
        for (const auto& block : blocks_)
            append(list, block->parameters());
        append(list, norm_.parameters());
        if (!tied_)
            append(list, head_.parameters());
        return list;
    }

  private:
    /// The result of a layer, what it saved put aside.
    template <class Y, class Kept>
    static Y taken(reigen::Forward<Y, Kept> result, Kept& kept) {
        kept = std::move(result.saved);
        return std::move(result.y);
    }

    static reigen::Initial initial(const GptConfig& config, double factor = 1) {
        return {.deviation = factor * 0.02, .seed = config.seed};
    }

    static reigen::BlockInitial block_initial(const GptConfig& config) {
        return {initial(config), initial(config, 1 / std::sqrt(2 * double(config.layers)))};
    }

    static reigen::BlockOptions block_options(const GptConfig& config) {
        return {.attention = {config.width, {config.heads, config.kv_heads}, config.head_dim, config.mask},
                .hidden = config.hidden,
                .mlp = config.mlp,
                .norm = config.norm,
                .dropout = config.dropout,
                .seed = config.seed};
    }

    bool tied_;
    Embedding embedding_;
    reigen::Dropout embedding_dropout_;
    std::vector<std::unique_ptr<Block>> blocks_;
    Norm norm_;
    Head head_;
};

} // namespace train_gpt
