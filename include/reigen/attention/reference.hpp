#pragma once

#include <reigen/core/error.hpp>
#include <reigen/kernel/mask.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

// Attention as the textbook writes it, in double and one score at a time: what everything faster is compared with.
// Shares nothing with the kernels but the meaning of a mask's two numbers.

/// A [batch, tokens, heads, dim] array of doubles.
struct ReferenceTensor {
    Index batch = 0, tokens = 0, heads = 0, dim = 0;
    std::vector<double> values;

    ReferenceTensor() = default;
    ReferenceTensor(Index batch_, Index tokens_, Index heads_, Index dim_)
        : batch(batch_),
          tokens(tokens_),
          heads(heads_),
          dim(dim_),
          values(std::size_t(batch_ * tokens_ * heads_ * dim_), 0.0) {}

    double& operator()(Index b, Index t, Index h, Index c = 0) {
        return values[std::size_t(((b * tokens + t) * heads + h) * dim + c)];
    }
    double operator()(Index b, Index t, Index h, Index c = 0) const {
        return values[std::size_t(((b * tokens + t) * heads + h) * dim + c)];
    }
};

/// Queries [B, Nq, Hq, d], keys [B, Nk, Hkv, d], values [B, Nk, Hkv, dv] and how they are scored.
struct ReferenceProblem {
    ReferenceTensor q, k, v;
    Mask mask = {};
    double scale = 1;
};

struct ReferenceOutput {
    ReferenceTensor out; // [B, Nq, Hq, dv]
    ReferenceTensor lse; // [B, Nq, Hq, 1]
};

struct ReferenceGradients {
    ReferenceTensor dq, dk, dv;
};

namespace detail {

/// One row of the softmax: scores of the keys that the query sees, and the weights they get.
struct ReferenceRow {
    std::vector<Index> keys;
    std::vector<double> weights;
    double lse = -std::numeric_limits<double>::infinity();
};

inline bool reference_sees(const ReferenceProblem& problem, Index query, Index key) {
    const Index distance = key - (query + problem.k.tokens - problem.q.tokens);
    return (!problem.mask.left || distance >= -*problem.mask.left) &&
           (!problem.mask.right || distance <= *problem.mask.right);
}

inline double reference_dot(const ReferenceTensor& a, Index b, Index i, Index head_a, const ReferenceTensor& c, Index j,
                            Index head_c) {
    double sum = 0;
    for (Index x = 0; x < a.dim; ++x)
        sum += a(b, i, head_a, x) * c(b, j, head_c, x);
    return sum;
}

inline ReferenceRow reference_row(const ReferenceProblem& problem, Index b, Index query, Index head) {
    const Index key_head = head / (problem.q.heads / problem.k.heads);
    ReferenceRow row;
    double largest = -std::numeric_limits<double>::infinity();
    for (Index key = 0; key < problem.k.tokens; ++key)
        if (reference_sees(problem, query, key)) {
            row.keys.push_back(key);
            row.weights.push_back(problem.scale * reference_dot(problem.q, b, query, head, problem.k, key, key_head));
            largest = std::max(largest, row.weights.back());
        }
    double sum = 0;
    for (double& weight : row.weights)
        sum += weight = std::exp(weight - largest);
    for (double& weight : row.weights)
        weight /= sum;
    if (!row.keys.empty())
        row.lse = largest + std::log(sum);
    return row;
}

} // namespace detail

/// out_i = sum_j softmax_j(scale q_i.k_j) v_j over the keys that i sees; 0 with lse = -infinity where it sees none.
inline ReferenceOutput reference_attention(const ReferenceProblem& problem) {
    const ReferenceTensor& q = problem.q;
    ReferenceOutput result = {{q.batch, q.tokens, q.heads, problem.v.dim}, {q.batch, q.tokens, q.heads, 1}};
    for (Index b = 0; b < q.batch; ++b)
        for (Index i = 0; i < q.tokens; ++i)
            for (Index h = 0; h < q.heads; ++h) {
                const detail::ReferenceRow row = detail::reference_row(problem, b, i, h);
                result.lse(b, i, h) = row.lse;
                for (std::size_t n = 0; n < row.keys.size(); ++n)
                    for (Index c = 0; c < problem.v.dim; ++c)
                        result.out(b, i, h, c) +=
                            row.weights[n] * problem.v(b, row.keys[n], h / (q.heads / problem.k.heads), c);
            }
    return result;
}

namespace detail {

/// Adds what one row of the softmax contributes, given the gradients of its output and of its lse.
inline void add_reference_row(const ReferenceProblem& problem, Index b, Index i, Index h, const ReferenceTensor& dout,
                              double dlse, ReferenceGradients& gradients) {
    const Index key_head = h / (problem.q.heads / problem.k.heads);
    const ReferenceRow row = reference_row(problem, b, i, h);
    std::vector<double> dweights;
    double mean = 0; // of the weights' gradients under the weights
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
        dweights.push_back(reference_dot(dout, b, i, h, problem.v, row.keys[n], key_head));
        mean += row.weights[n] * dweights[n];
    }
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
        const Index j = row.keys[n];
        const double dscore = problem.scale * row.weights[n] * (dweights[n] - mean + dlse);
        for (Index c = 0; c < problem.v.dim; ++c)
            gradients.dv(b, j, key_head, c) += row.weights[n] * dout(b, i, h, c);
        for (Index c = 0; c < problem.q.dim; ++c) {
            gradients.dq(b, i, h, c) += dscore * problem.k(b, j, key_head, c);
            gradients.dk(b, j, key_head, c) += dscore * problem.q(b, i, h, c);
        }
    }
}

} // namespace detail

/// Gradients of sum(dout o out) + sum(dlse o lse); an empty dlse is 0.
inline ReferenceGradients reference_attention_backward(const ReferenceProblem& problem, const ReferenceTensor& dout,
                                                       const ReferenceTensor& dlse = {}) {
    const ReferenceTensor& q = problem.q;
    ReferenceGradients gradients = {{q.batch, q.tokens, q.heads, q.dim},
                                    {problem.k.batch, problem.k.tokens, problem.k.heads, q.dim},
                                    {problem.v.batch, problem.v.tokens, problem.v.heads, problem.v.dim}};
    for (Index b = 0; b < q.batch; ++b)
        for (Index i = 0; i < q.tokens; ++i)
            for (Index h = 0; h < q.heads; ++h)
                detail::add_reference_row(problem, b, i, h, dout, dlse.values.empty() ? 0.0 : dlse(b, i, h), gradients);
    return gradients;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
