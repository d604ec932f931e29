#pragma once

// A GPT in double precision on one rank, with its gradients written by hand: what the whole-model tests compare with.
//
// It includes nothing of the library. Loops are plain and follow the formulas; nothing here is meant to be fast.
// Token rows are batch-major: row = sequence * length + position. Weights are [in, out]. Fused projections hold their
// parts one after the other: q | k | v in whole heads, and gate | up.

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace reference {

using Index = Eigen::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Parameters, or gradients, by name. Vectors are matrices of one row.
using Tensors = std::map<std::string, Matrix>;

struct GptConfig {
    Index layers = 2;
    Index width = 12;
    Index heads = 4;
    Index kv_heads = 2;
    Index head_dim = 4;
    Index hidden = 10;
    Index vocabulary = 11;
    bool swiglu = false;
    bool rms_norm = false;
    bool tied = false;
    std::optional<Index> window = std::nullopt; // keys back, the query's own position not counted; none = plain causal
    double norm_epsilon = 1e-5;
    double rotary_base = 10000;
    double smoothing = 0;
    Index ignored_label = -100;
};

/// The factor by which dropout number `site` multiplies element (row, column): 0 or 1/(1-p).
using DropoutFactor = std::function<double(Index site, Index row, Index column)>;

// ---- products, in plain loops ----

inline double dot(const double* a, const double* b, Index count) {
    double sum = 0;
    for (Index i = 0; i < count; ++i)
        sum += a[i] * b[i];
    return sum;
}

/// y += factor x
inline void add_scaled(double factor, const double* x, double* y, Index count) {
    for (Index i = 0; i < count; ++i)
        y[i] += factor * x[i];
}

/// a b
inline Matrix product(const Matrix& a, const Matrix& b) {
    Matrix c = Matrix::Zero(a.rows(), b.cols());
    for (Index i = 0; i < a.rows(); ++i)
        for (Index k = 0; k < a.cols(); ++k)
            add_scaled(a(i, k), &b(k, 0), &c(i, 0), b.cols());
    return c;
}

/// c += a^T b
inline void add_transposed_product(const Matrix& a, const Matrix& b, Matrix& c) {
    for (Index k = 0; k < a.rows(); ++k)
        for (Index i = 0; i < a.cols(); ++i)
            add_scaled(a(k, i), &b(k, 0), &c(i, 0), b.cols());
}

// ---- normalisation: y = (x - mean) / sqrt(variance + epsilon) * scale + shift; RMS: no mean, no shift ----

struct NormResult {
    Matrix y, normalised;
    std::vector<double> inverse_deviation;
};

inline NormResult norm_forward(const Matrix& x, const Matrix& scale, const Matrix* shift, double epsilon) {
    NormResult result{Matrix(x.rows(), x.cols()), Matrix(x.rows(), x.cols()),
                      std::vector<double>(std::size_t(x.rows()))};
    for (Index i = 0; i < x.rows(); ++i) {
        double mean = 0, variance = 0;
        for (Index j = 0; j < x.cols() && shift; ++j)
            mean += x(i, j) / double(x.cols());
        for (Index j = 0; j < x.cols(); ++j)
            variance += (x(i, j) - mean) * (x(i, j) - mean) / double(x.cols());
        result.inverse_deviation[std::size_t(i)] = 1 / std::sqrt(variance + epsilon);
        for (Index j = 0; j < x.cols(); ++j) {
            result.normalised(i, j) = (x(i, j) - mean) * result.inverse_deviation[std::size_t(i)];
            result.y(i, j) = result.normalised(i, j) * scale(0, j) + (shift ? (*shift)(0, j) : 0.0);
        }
    }
    return result;
}

inline Matrix norm_backward(const NormResult& saved, const Matrix& scale, const Matrix& dy, Matrix& dscale,
                            Matrix* dshift) {
    Matrix dx(dy.rows(), dy.cols());
    for (Index i = 0; i < dy.rows(); ++i) {
        double mean_g = 0, mean_gn = 0; // of g = dy * scale, and of g times the normalised input
        for (Index j = 0; j < dy.cols(); ++j) {
            mean_g += dy(i, j) * scale(0, j) / double(dy.cols());
            mean_gn += dy(i, j) * scale(0, j) * saved.normalised(i, j) / double(dy.cols());
            dscale(0, j) += dy(i, j) * saved.normalised(i, j);
            if (dshift)
                (*dshift)(0, j) += dy(i, j);
        }
        for (Index j = 0; j < dy.cols(); ++j)
            dx(i, j) = saved.inverse_deviation[std::size_t(i)] *
                       (dy(i, j) * scale(0, j) - (dshift ? mean_g : 0.0) - saved.normalised(i, j) * mean_gn);
    }
    return dx;
}

// ---- activations ----

/// The tanh form of GELU, and its derivative.
inline double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
inline double gelu_slope(double x) {
    const double c = std::sqrt(2 / std::numbers::pi);
    const double t = std::tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

inline double silu(double x) {
    return x / (1 + std::exp(-x));
}
inline double silu_slope(double x) {
    const double s = 1 / (1 + std::exp(-x));
    return s + x * s * (1 - s);
}

// ---- rotary positions: the pair (x_i, x_{i + d/2}) turns by position / base^(2i/d) ----

/// Turns `heads` heads of `head_dim` columns from `first_column` on; backwards turns the other way.
inline void rotate(Matrix& x, Index first_column, Index heads, const GptConfig& config, Index length, bool backwards) {
    const Index half = config.head_dim / 2;
    for (Index row = 0; row < x.rows(); ++row)
        for (Index h = 0; h < heads; ++h)
            for (Index i = 0; i < half; ++i) {
                const double angle = double(row % length) *
                                     std::pow(config.rotary_base, -2.0 * double(i) / double(config.head_dim)) *
                                     (backwards ? -1 : 1);
                double& a = x(row, first_column + h * config.head_dim + i);
                double& b = x(row, first_column + h * config.head_dim + half + i);
                const double a_before = a;
                a = a * std::cos(angle) - b * std::sin(angle);
                b = a_before * std::sin(angle) + b * std::cos(angle);
            }
}

// ---- attention: causal, grouped heads, on rotated q | k | v ----

inline bool sees(Index query, Index key, const GptConfig& config) {
    return key <= query && (!config.window || key >= query - *config.window);
}

/// Calls what(first row of the sequence, query, head, q column, k column, v column) for each query of each head; the
/// columns are the first of the head in q | k | v.
template <class What>
void for_each_head_and_query(const GptConfig& config, Index batch, Index length, What what) {
    const Index group = config.heads / config.kv_heads;
    for (Index b = 0; b < batch; ++b)
        for (Index h = 0; h < config.heads; ++h)
            for (Index q = 0; q < length; ++q) {
                const Index k_column = (config.heads + h / group) * config.head_dim;
                what(b * length, q, h, h * config.head_dim, k_column, k_column + config.kv_heads * config.head_dim);
            }
}

struct AttentionResult {
    Matrix out;
    std::vector<Matrix> weights; // per query row, [heads, keys]: the softmax
};

inline AttentionResult attention_forward(const Matrix& qkv, const GptConfig& config, Index batch, Index length) {
    AttentionResult result{Matrix::Zero(qkv.rows(), config.heads * config.head_dim),
                           std::vector<Matrix>(std::size_t(qkv.rows()), Matrix::Zero(config.heads, length))};
    const Index d = config.head_dim;
    const double scale = 1 / std::sqrt(double(d));
    for_each_head_and_query(config, batch, length, [&](Index first, Index q, Index h, Index qc, Index kc, Index vc) {
        Matrix& weights = result.weights[std::size_t(first + q)];
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (Index k = 0; k < length; ++k)
            if (sees(q, k, config)) {
                weights(h, k) = scale * dot(&qkv(first + q, qc), &qkv(first + k, kc), d);
                largest = std::max(largest, weights(h, k));
            }
        for (Index k = 0; k < length; ++k) {
            weights(h, k) = sees(q, k, config) ? std::exp(weights(h, k) - largest) : 0.0;
            sum += weights(h, k);
        }
        for (Index k = 0; k < length; ++k) {
            weights(h, k) /= sum;
            add_scaled(weights(h, k), &qkv(first + k, vc), &result.out(first + q, qc), d);
        }
    });
    return result;
}

inline Matrix attention_backward(const AttentionResult& saved, const Matrix& qkv, const Matrix& dout,
                                 const GptConfig& config, Index batch, Index length) {
    Matrix dqkv = Matrix::Zero(qkv.rows(), qkv.cols());
    const Index d = config.head_dim;
    const double scale = 1 / std::sqrt(double(d));
    for_each_head_and_query(config, batch, length, [&](Index first, Index q, Index h, Index qc, Index kc, Index vc) {
        const Matrix& weights = saved.weights[std::size_t(first + q)];
        const double* dout_head = &dout(first + q, qc);
        const double along = dot(dout_head, &saved.out(first + q, qc), d);
        for (Index k = 0; k < length; ++k) {
            const double p = weights(h, k);
            const double ds = p * (dot(dout_head, &qkv(first + k, vc), d) - along) * scale;
            add_scaled(p, dout_head, &dqkv(first + k, vc), d);
            add_scaled(ds, &qkv(first + k, kc), &dqkv(first + q, qc), d);
            add_scaled(ds, &qkv(first + q, qc), &dqkv(first + k, kc), d);
        }
    });
    return dqkv;
}

// ---- cross entropy: the mean over labels that count ----

struct LossResult {
    double loss = 0;
    Matrix dlogits; // of the mean
};

inline LossResult cross_entropy(const Matrix& logits, const std::vector<Index>& labels, double smoothing,
                                Index ignored_label) {
    LossResult result{0, Matrix::Zero(logits.rows(), logits.cols())};
    const Index classes = logits.cols();
    double counted = 0;
    for (const Index label : labels)
        counted += label != ignored_label;
    for (Index i = 0; i < logits.rows(); ++i) {
        const Index label = labels[std::size_t(i)];
        if (label == ignored_label)
            continue;
        double largest = logits(i, 0), sum = 0;
        for (Index j = 0; j < classes; ++j)
            largest = std::max(largest, logits(i, j));
        for (Index j = 0; j < classes; ++j)
            sum += std::exp(logits(i, j) - largest);
        const double lse = largest + std::log(sum);
        for (Index j = 0; j < classes; ++j) {
            const double wanted = j == label ? 1 - smoothing : smoothing / double(classes - 1);
            result.loss += wanted * (lse - logits(i, j)) / counted;
            result.dlogits(i, j) = (std::exp(logits(i, j) - lse) - wanted) / counted;
        }
    }
    return result;
}

// ---- the model ----

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
