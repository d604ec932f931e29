#pragma once

// A GPT in double precision on one rank, with its gradients written by hand: what the whole-model tests compare with.
//
// Token rows are batch-major: row = sequence * length + position. Weights are [in, out]. Fused projections hold their
// parts one after the other: q | k | v in whole heads, and gate | up.

#include "reference/activation.hpp"
#include "reference/attention.hpp"
#include "reference/cross_entropy.hpp"
#include "reference/gpt_config.hpp"
#include "reference/norm.hpp"

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reference {

/// Parameters, or gradients, by name. Vectors are matrices of one row.
using Tensors = std::map<std::string, Matrix>;

/// The factor by which dropout number `site` multiplies element (row, column): 0 or 1/(1-p).
using DropoutFactor = std::function<double(Index site, Index row, Index column)>;

class DenseGpt {
  public:
    DenseGpt(const GptConfig& config, Tensors parameters) : config_(config), parameters_(std::move(parameters)) {}

    /// Names and shapes of what the model is made of, all zero.
    static Tensors zeros(const GptConfig& c) {
        Tensors t;
        const auto norm = [&](const std::string& name) {
            t[name + ".scale"] = Matrix::Zero(1, c.width);
            if (!c.rms_norm)
                t[name + ".shift"] = Matrix::Zero(1, c.width);
        };
        const auto linear = [&](const std::string& name, Index in, Index out) {
            t[name + ".weight"] = Matrix::Zero(in, out);
            t[name + ".bias"] = Matrix::Zero(1, out);
        };
        t["embedding.weight"] = Matrix::Zero(c.vocabulary, c.width);
        for (Index layer = 0; layer < c.layers; ++layer) {
            const std::string block = "blocks." + std::to_string(layer);
            norm(block + ".attention_norm");
            linear(block + ".attention.qkv", c.width, (c.heads + 2 * c.kv_heads) * c.head_dim);
            linear(block + ".attention.out", c.heads * c.head_dim, c.width);
            norm(block + ".mlp_norm");
            linear(block + ".mlp.up", c.width, c.swiglu ? 2 * c.hidden : c.hidden);
            linear(block + ".mlp.down", c.hidden, c.width);
        }
        norm("norm");
        if (!c.tied)
            t["head.weight"] = Matrix::Zero(c.vocabulary, c.width);
        return t;
    }

    const Tensors& parameters() const { return parameters_; }
    Tensors& parameters() { return parameters_; }
    const Tensors& gradients() const { return gradients_; }
    void set_dropout(DropoutFactor factor) { dropout_ = std::move(factor); }

    Matrix logits(const std::vector<Index>& ids, Index length) { return forward(ids, length); }

    double loss(const std::vector<Index>& ids, const std::vector<Index>& labels, Index length) {
        return cross_entropy(forward(ids, length), labels, config_.smoothing, config_.ignored_label).loss;
    }

    /// The loss, leaving the gradients of all parameters in `gradients()`.
    double loss_and_gradients(const std::vector<Index>& ids, const std::vector<Index>& labels, Index length) {
        const LossResult result = cross_entropy(forward(ids, length), labels, config_.smoothing, config_.ignored_label);
        gradients_ = zeros(config_);
        backward(ids, result.dlogits);
        return result.loss;
    }

  private:
    struct BlockSaved {
        NormResult attention_norm, mlp_norm;
        Matrix qkv, up, hidden;
        AttentionResult attention;
    };

    const Matrix& parameter(const std::string& name) const { return parameters_.at(name); }
    std::string head_name() const { return config_.tied ? "embedding.weight" : "head.weight"; }

    Matrix dropped(Matrix x, Index site) const {
        if (dropout_)
            for (Index i = 0; i < x.rows(); ++i)
                for (Index j = 0; j < x.cols(); ++j)
                    x(i, j) *= dropout_(site, i, j);
        return x;
    }

    NormResult norm(const std::string& name, const Matrix& x) const {
        const Matrix* shift = config_.rms_norm ? nullptr : &parameter(name + ".shift");
        return norm_forward(x, parameter(name + ".scale"), shift, config_.norm_epsilon);
    }

    Matrix norm_back(const std::string& name, const NormResult& saved, const Matrix& dy) {
        Matrix* dshift = config_.rms_norm ? nullptr : &gradients_.at(name + ".shift");
        return norm_backward(saved, parameter(name + ".scale"), dy, gradients_.at(name + ".scale"), dshift);
    }

    Matrix linear(const std::string& name, const Matrix& x) const {
        return product(x, parameter(name + ".weight")).rowwise() + parameter(name + ".bias").row(0);
    }

    Matrix linear_back(const std::string& name, const Matrix& x, const Matrix& dy) {
        add_transposed_product(x, dy, gradients_.at(name + ".weight"));
        for (Index i = 0; i < dy.rows(); ++i)
            gradients_.at(name + ".bias").row(0) += dy.row(i);
        return product(dy, parameter(name + ".weight").transpose());
    }

    Matrix activation(const Matrix& up) const {
        Matrix hidden(up.rows(), config_.hidden);
        for (Index i = 0; i < up.rows(); ++i)
            for (Index j = 0; j < config_.hidden; ++j)
                hidden(i, j) = config_.swiglu ? silu(up(i, j)) * up(i, config_.hidden + j) : gelu(up(i, j));
        return hidden;
    }

    Matrix activation_back(const Matrix& up, const Matrix& dhidden) const {
        Matrix dup(up.rows(), up.cols());
        for (Index i = 0; i < up.rows(); ++i)
            for (Index j = 0; j < config_.hidden; ++j) {
                if (!config_.swiglu) {
                    dup(i, j) = dhidden(i, j) * gelu_slope(up(i, j));
                    continue;
                }
                dup(i, j) = dhidden(i, j) * silu_slope(up(i, j)) * up(i, config_.hidden + j);
                dup(i, config_.hidden + j) = dhidden(i, j) * silu(up(i, j));
            }
        return dup;
    }

    /// Dropout sites: 0 after the embedding, 2 layer + 1 after attention, 2 layer + 2 after the MLP.
    Matrix block_forward(Index layer, const Matrix& x, BlockSaved& saved) const {
        const std::string name = "blocks." + std::to_string(layer);
        saved.attention_norm = norm(name + ".attention_norm", x);
        saved.qkv = linear(name + ".attention.qkv", saved.attention_norm.y);
        rotate(saved.qkv, 0, config_.heads + config_.kv_heads, config_, length_, false);
        saved.attention = attention_forward(saved.qkv, config_, x.rows() / length_, length_);
        const Matrix middle = x + dropped(linear(name + ".attention.out", saved.attention.out), 2 * layer + 1);
        saved.mlp_norm = norm(name + ".mlp_norm", middle);
        saved.up = linear(name + ".mlp.up", saved.mlp_norm.y);
        saved.hidden = activation(saved.up);
        return middle + dropped(linear(name + ".mlp.down", saved.hidden), 2 * layer + 2);
    }

    Matrix block_backward(Index layer, const BlockSaved& saved, const Matrix& dy) {
        const std::string name = "blocks." + std::to_string(layer);
        const Matrix dhidden = linear_back(name + ".mlp.down", saved.hidden, dropped(dy, 2 * layer + 2));
        const Matrix dnormed = linear_back(name + ".mlp.up", saved.mlp_norm.y, activation_back(saved.up, dhidden));
        const Matrix dmiddle = dy + norm_back(name + ".mlp_norm", saved.mlp_norm, dnormed);
        const Matrix dout = linear_back(name + ".attention.out", saved.attention.out, dropped(dmiddle, 2 * layer + 1));
        Matrix dqkv = attention_backward(saved.attention, saved.qkv, dout, config_, dy.rows() / length_, length_);
        rotate(dqkv, 0, config_.heads + config_.kv_heads, config_, length_, true);
        return dmiddle + norm_back(name + ".attention_norm", saved.attention_norm,
                                   linear_back(name + ".attention.qkv", saved.attention_norm.y, dqkv));
    }

    Matrix forward(const std::vector<Index>& ids, Index length) {
        if (ids.empty() || Index(ids.size()) % length != 0)
            throw std::invalid_argument("DenseGpt: want whole sequences");
        length_ = length;
        blocks_.assign(std::size_t(config_.layers), {});
        Matrix x(Index(ids.size()), config_.width);
        for (Index i = 0; i < x.rows(); ++i)
            x.row(i) = parameter("embedding.weight").row(ids[std::size_t(i)]);
        x = dropped(x, 0);
        for (Index layer = 0; layer < config_.layers; ++layer)
            x = block_forward(layer, x, blocks_[std::size_t(layer)]);
        norm_ = norm("norm", x);
        return product(norm_.y, parameter(head_name()).transpose());
    }

    void backward(const std::vector<Index>& ids, const Matrix& dlogits) {
        add_transposed_product(dlogits, norm_.y, gradients_.at(head_name()));
        Matrix dx = norm_back("norm", norm_, product(dlogits, parameter(head_name())));
        for (Index layer = config_.layers; layer-- > 0;)
            dx = block_backward(layer, blocks_[std::size_t(layer)], dx);
        dx = dropped(dx, 0);
        for (Index i = 0; i < dx.rows(); ++i)
            gradients_.at("embedding.weight").row(ids[std::size_t(i)]) += dx.row(i);
    }

    GptConfig config_;
    Tensors parameters_, gradients_;
    DropoutFactor dropout_;
    Index length_ = 0;
    std::vector<BlockSaved> blocks_;
    NormResult norm_;
};

} // namespace reference
