#pragma once

#include "nn/support.hpp"
#include "reference/dense_gpt.hpp"

#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/gradients.hpp>
#include <train_gpt/model.hpp>

#include <map>
#include <string>
#include <vector>

// The sharded GPT and the dense one, with the same parameters on the same tokens.

namespace model_test {

using namespace reigen;
using namespace layer_cases;
using train_gpt::Gpt;
using train_gpt::GptConfig;

struct Case {
    std::string name;
    GptConfig config;
    double smoothing = 0;
    Index batch = 3;
    Index length = 7;
};

/// 8 heads on 4 K/V heads: uneven over three ranks.
inline Case uneven_heads() {
    return {
        .name = "gelu, layer norm, 8 heads on 4",
        .config = {.vocabulary = 11, .layers = 2, .width = 6, .heads = 8, .kv_heads = 4, .head_dim = 2, .hidden = 10}};
}

/// 4 heads on 2 K/V heads: fewer than three ranks. Everything that can be otherwise is.
inline Case shared_heads() {
    return {.name = "swiglu, rms norm, window, dropout, tied, 4 heads on 2",
            .config = {.vocabulary = 7,
                       .layers = 2,
                       .width = 5,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 4,
                       .hidden = 5,
                       .mlp = MlpKind::swiglu,
                       .norm = NormKind::rms_norm,
                       .mask = Mask::window(3),
                       .dropout = 0.25,
                       .tied = true,
                       .seed = 9},
            .smoothing = 0.1};
}

inline Pass pass_of(const Case& c, SequenceLayout layout) {
    return {.sequences = {c.batch, c.length, layout}, .training = true, .step = 5, .micro_batch = 1};
}

inline std::vector<std::int32_t> ids_of(const Case& c) {
    std::vector<std::int32_t> ids;
    for (Index i = 0; i < c.batch * c.length; ++i)
        ids.push_back(std::int32_t((i * i + 3 * i) % c.config.vocabulary));
    return ids;
}

/// With a few ignored, unlike many on each rank.
inline std::vector<std::int32_t> labels_of(const Case& c) {
    std::vector<std::int32_t> labels;
    for (Index i = 0; i < c.batch * c.length; ++i)
        labels.push_back(i % 5 == 3 && i < 12 ? -100 : std::int32_t((7 * i + 2) % c.config.vocabulary));
    return labels;
}

inline reference::GptConfig dense_config(const Case& c) {
    return {.layers = c.config.layers,
            .width = c.config.width,
            .heads = c.config.heads,
            .kv_heads = c.config.kv_heads,
            .head_dim = c.config.head_dim,
            .hidden = c.config.hidden,
            .vocabulary = c.config.vocabulary,
            .swiglu = c.config.mlp == MlpKind::swiglu,
            .rms_norm = c.config.norm == NormKind::rms_norm,
            .tied = c.config.tied,
            .window = c.config.mask.left,
            .smoothing = c.smoothing};
}

inline reference::Tensors some_parameters(const Case& c) {
    reference::Tensors tensors = reference::DenseGpt::zeros(dense_config(c));
    int which = 0;
    for (auto& [name, tensor] : tensors) {
        tensor = 0.5 * waves(++which, tensor.rows(), tensor.cols());
        if (name.ends_with(".scale"))
            tensor.array() += 1;
    }
    return tensors;
}

/// What dropout number `site` of the dense model does: 0 after the embedding, then two a block.
inline reference::DropoutFactor dense_dropout(const Case& c) {
    return [c](Index site, Index row, Index column) {
        const std::string name = site == 0       ? "embedding"
                                 : site % 2 == 1 ? "blocks." + std::to_string(site / 2) + ".attention"
                                                 : "blocks." + std::to_string(site / 2 - 1) + ".mlp";
        const RandomStream stream(c.config.seed, 5, 1, tensor_number(name));
        const DropoutPattern pattern(c.config.dropout, c.config.width, stream);
        return pattern.kept(row, column / 4)[std::size_t(column % 4)] ? pattern.factor() : 0.0;
    };
}

/// The dense model after one forward and backward pass.
struct Dense {
    reference::DenseGpt gpt;
    double loss;
    reference::Matrix logits;
};

inline Dense dense_pass(const Case& c) {
    reference::DenseGpt gpt(dense_config(c), some_parameters(c));
    if (c.config.dropout > 0)
        gpt.set_dropout(dense_dropout(c));
    const auto widened = [](const std::vector<std::int32_t>& x) { return std::vector<Index>(x.begin(), x.end()); };
    const double loss = gpt.loss_and_gradients(widened(ids_of(c)), widened(labels_of(c)), c.length);
    reference::Matrix logits = gpt.logits(widened(ids_of(c)), c.length);
    return {std::move(gpt), loss, std::move(logits)};
}

/// The sharded model with its loss, and its pass over one batch.
template <class S, Placement Residual>
class Sharding {
  public:
    Sharding(const Mesh& mesh, const Case& c, SequenceLayout layout)
        : case_(c),
          pass_(pass_of(c, layout)),
          rows_(pass_.sequences.rows(mesh, token_axes).runs(mesh.rank(token_axes))),
          loss_({.smoothing = c.smoothing}),
          gpt(mesh, c.config) {}

    void set(const reference::Tensors& tensors) {
        for (const auto& parameter : gpt.parameters())
            set_value(parameter, tensors.at(parameter.name));
    }

    auto logits() const { return gpt.forward(at_rows(ids_of(case_), rows_), pass_).y; }

    /// The loss; adds `weight` times its gradients to those of the parameters.
    double forward_and_backward(double weight = 1) {
        auto [logits, saved] = gpt.forward(at_rows(ids_of(case_), rows_), pass_);
        auto [loss, loss_saved] = loss_.forward(std::move(logits), at_rows(labels_of(case_), rows_));
        gpt.backward(std::move(saved), loss_.backward(std::move(loss_saved), weight));
        return loss;
    }

  private:
    Case case_;
    Pass pass_;
    Runs rows_;
    VocabParallelCrossEntropy<S> loss_;

  public:
    Gpt<S, Residual> gpt;
};

inline const SequenceLayout all_layouts[] = {SequenceLayout::contiguous, SequenceLayout::zigzag,
                                             SequenceLayout::striped};

/// One rank, and the meshes dp x cp x tp = 2x1x2, 1x2x2 and 1x1x3.
inline const std::vector<std::vector<MeshAxis>> model_meshes = {
    {}, {{dp, 2}, {cp, 1}, {tp, 2}}, {{dp, 1}, {cp, 2}, {tp, 2}}, {{dp, 1}, {cp, 1}, {tp, 3}}};

} // namespace model_test
