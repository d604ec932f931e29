#pragma once

#include <reigen/attention/reference.hpp>
#include <reigen/core/random.hpp>
#include <reigen/kernel/attention_backward.hpp>
#include <reigen/kernel/attention_forward.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

// Attention problems for the kernel tests, and ways to run the kernels on them.

namespace attention_cases {

using reigen::AttentionGradient;
using reigen::AttentionState;
using reigen::HeadsView;
using reigen::Index;
using reigen::Mask;
using reigen::ReferenceGradients;
using reigen::ReferenceOutput;
using reigen::ReferenceProblem;
using reigen::ReferenceTensor;
using reigen::Runs;
using reigen::ScoreRule;
using reigen::Strided;

struct Shape {
    Index batch, queries, keys, query_heads, key_heads, head_dim, value_dim;

    std::string text() const {
        return reigen::concat("B ", batch, " Nq ", queries, " Nk ", keys, " Hq ", query_heads, " Hkv ", key_heads,
                              " d ", head_dim, " dv ", value_dim);
    }
};

inline std::vector<Mask> masks() {
    return {Mask::everything(), Mask::causal(),     Mask::window(3),   Mask::window(0),
            Mask::window(2, 1), Mask::window(7, 9), {std::nullopt, 4}, {5, std::nullopt}};
}

/// Numbers that float holds exactly, so that all precisions work on the same problem.
inline void fill(ReferenceTensor& tensor, std::uint64_t id) {
    const reigen::RandomStream random(7, id);
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
        tensor.values[i] = double(float(random.normal(Index(i))));
}

inline ReferenceProblem problem(const Shape& s, const Mask& mask) {
    ReferenceProblem p = {{s.batch, s.queries, s.query_heads, s.head_dim},
                          {s.batch, s.keys, s.key_heads, s.head_dim},
                          {s.batch, s.keys, s.key_heads, s.value_dim},
                          mask,
                          1 / std::sqrt(double(s.head_dim))};
    fill(p.q, 1);
    fill(p.k, 2);
    fill(p.v, 3);
    return p;
}

/// A tensor in precision T whose tokens lie apart, with NaN between them: a column block of a wider matrix.
template <class T>
struct Heads {
    Index batch, tokens, heads, dim;
    Index stride;
    std::vector<T> memory;

    Heads(Index batch_, Index tokens_, Index heads_, Index dim_)
        : batch(batch_),
          tokens(tokens_),
          heads(heads_),
          dim(dim_),
          stride(heads_ * dim_ + 5),
          memory(std::size_t(batch_ * tokens_ * (heads_ * dim_ + 5)) + 3, std::numeric_limits<T>::quiet_NaN()) {}

    explicit Heads(const ReferenceTensor& from) : Heads(from.batch, from.tokens, from.heads, from.dim) {
        each([&](Index b, Index t, Index h, Index c) { view().at(b, t, h)[c] = T(from(b, t, h, c)); });
    }

    /// Only the tokens at these positions.
    Heads(const ReferenceTensor& from, const Runs& positions)
        : Heads(from.batch, positions.size(), from.heads, from.dim) {
        each([&](Index b, Index t, Index h, Index c) { view().at(b, t, h)[c] = T(from(b, positions[t], h, c)); });
    }

    template <class Visit>
    void each(Visit visit) const {
        for (Index b = 0; b < batch; ++b)
            for (Index t = 0; t < tokens; ++t)
                for (Index h = 0; h < heads; ++h)
                    for (Index c = 0; c < dim; ++c)
                        visit(b, t, h, c);
    }

    HeadsView<T> view() { return {memory.data() + 3, batch, tokens, heads, dim, tokens * stride, stride, dim}; }
    HeadsView<const T> view() const {
        return {memory.data() + 3, batch, tokens, heads, dim, tokens * stride, stride, dim};
    }
    T operator()(Index b, Index t, Index h, Index c) const { return view().at(b, t, h)[c]; }
    void zero() {
        each([&](Index b, Index t, Index h, Index c) { view().at(b, t, h)[c] = T(0); });
    }
};

template <class T>
struct Output {
    Heads<T> out;
    std::vector<T> lse; // [batch * tokens, heads]

    Strided<T> lse_view() { return {lse.data(), out.batch * out.tokens, out.heads, out.heads, 1}; }
    T lse_at(Index b, Index t, Index h) const { return lse[std::size_t((b * out.tokens + t) * out.heads + h)]; }
};

inline ScoreRule rule(const ReferenceProblem& p) {
    return {p.scale, p.mask, p.k.tokens - p.q.tokens};
}

/// What the queries at some positions know after the blocks of keys, in this order.
template <class T>
AttentionState<T> absorb(const ReferenceProblem& p, const Runs& queries, const std::vector<Runs>& blocks) {
    const Heads<T> q(p.q, queries);
    AttentionState<T> state(q.view(), queries, p.k.heads, p.v.dim, rule(p));
    for (const Runs& block : blocks)
        state.absorb(Heads<T>(p.k, block).view(), Heads<T>(p.v, block).view(), block);
    return state;
}

template <class T>
Output<T> finish(const AttentionState<T>& state, const ReferenceProblem& p, Index tokens) {
    Output<T> result = {Heads<T>(p.q.batch, tokens, p.q.heads, p.v.dim),
                        std::vector<T>(std::size_t(p.q.batch * tokens * p.q.heads), T(-7))};
    state.finish(result.out.view(), result.lse_view());
    return result;
}

template <class T>
Output<T> forward(const ReferenceProblem& p, const Runs& queries, const std::vector<Runs>& blocks) {
    return finish<T>(absorb<T>(p, queries, blocks), p, queries.size());
}

/// All queries on all keys at once.
template <class T>
Output<T> dense(const ReferenceProblem& p) {
    return forward<T>(p, Runs::range(0, p.q.tokens), {Runs::range(0, p.k.tokens)});
}

template <class T>
struct Gradients {
    Heads<T> dq;
    std::vector<Heads<T>> dk, dv; // one for each block
};

/// Backward for the queries at some positions. dlse may be empty.
template <class T>
Gradients<T> backward(const ReferenceProblem& p, const Runs& queries, const std::vector<Runs>& blocks, Output<T> output,
                      const ReferenceTensor& dout, const ReferenceTensor& dlse = {}) {
    const Heads<T> q(p.q, queries), d(dout, queries);
    const Heads<T> dl = dlse.values.empty() ? Heads<T>(0, 0, 0, 0) : Heads<T>(dlse, queries);
    const Strided<const T> dlse_view = {dl.tokens == 0 ? nullptr : dl.view().data, dl.batch * dl.tokens, dl.heads,
                                        dl.stride, 1};
    AttentionGradient<T> state({q.view(), output.out.view(), d.view(), output.lse_view(), dlse_view}, queries,
                               p.k.heads, rule(p));
    Gradients<T> result = {Heads<T>(p.q.batch, queries.size(), p.q.heads, p.q.dim), {}, {}};
    for (const Runs& block : blocks) {
        result.dk.emplace_back(p.k.batch, block.size(), p.k.heads, p.k.dim).zero();
        result.dv.emplace_back(p.v.batch, block.size(), p.v.heads, p.v.dim).zero();
        state.absorb(Heads<T>(p.k, block).view(), Heads<T>(p.v, block).view(), block, result.dk.back().view(),
                     result.dv.back().view());
    }
    state.finish(result.dq.view());
    return result;
}

/// Largest |got - want| / (eps |bound|) over the tokens at these positions; NaN counts as infinite.
template <class T>
double error_ratio(const Heads<T>& got, const ReferenceTensor& want, const Runs& positions, double bound) {
    double worst = 0;
    got.each([&](Index b, Index t, Index h, Index c) {
        const double error = std::abs(double(got(b, t, h, c)) - want(b, positions[t], h, c));
        worst = std::max(worst, std::isnan(error) ? 1e300 : error);
    });
    return worst / (std::numeric_limits<T>::epsilon() * bound);
}

/// The largest sum of |q_c k_c| scale over all pairs, and at least 1: rounding of scores is proportional to it.
inline double score_bound(const ReferenceProblem& p) {
    double q = 0, k = 0;
    for (const double x : p.q.values)
        q = std::max(q, std::abs(x));
    for (const double x : p.k.values)
        k = std::max(k, std::abs(x));
    return std::max(1.0, p.scale * double(p.q.dim) * q * k / 4);
}

/// out and lse of the queries at these positions agree with the reference to a few roundings.
template <class T>
void expect_close(const Output<T>& got, const ReferenceOutput& want, const ReferenceProblem& p, const Runs& queries,
                  const std::string& what) {
    const double bound = 4 * score_bound(p);
    EXPECT_LE(error_ratio<T>(got.out, want.out, queries, bound), 4) << what;
    for (Index b = 0; b < got.out.batch; ++b)
        for (Index t = 0; t < got.out.tokens; ++t)
            for (Index h = 0; h < got.out.heads; ++h) {
                const double lse = want.lse(b, queries[t], h);
                if (std::isinf(lse))
                    EXPECT_EQ(double(got.lse_at(b, t, h)), lse) << what;
                else
                    EXPECT_NEAR(double(got.lse_at(b, t, h)), lse, 4 * bound * std::numeric_limits<T>::epsilon())
                        << what;
            }
}

template <class T>
bool same_bits(const Output<T>& a, const Output<T>& b) {
    bool same = a.out.tokens == b.out.tokens && a.lse == b.lse;
    a.out.each([&](Index i, Index t, Index h, Index c) { same = same && a.out(i, t, h, c) == b.out(i, t, h, c); });
    return same;
}

/// Whether `some` are the queries of `all` from `first` on, bit for bit.
template <class T>
bool same_rows(const Output<T>& some, const Output<T>& all, Index first) {
    bool same = true;
    some.out.each([&](Index b, Index t, Index h, Index c) {
        same = same && some.out(b, t, h, c) == all.out(b, first + t, h, c) &&
               some.lse_at(b, t, h) == all.lse_at(b, first + t, h);
    });
    return same;
}

} // namespace attention_cases
