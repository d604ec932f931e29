#pragma once

// Causal attention of grouped heads on q | k | v, in whole heads, that rotary positions have turned: the pair
// (x_i, x_{i + d/2}) by position / base^(2i/d). Token rows are batch-major: row = sequence * length + position.

#include "reference/gpt_config.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reference {

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

} // namespace reference
