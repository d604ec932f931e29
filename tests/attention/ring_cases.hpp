#pragma once

#include "support/bits.hpp"
#include "support/worlds.hpp"

#include <reigen/attention/reference.hpp>
#include <reigen/attention/ring.hpp>
#include <reigen/core/random.hpp>
#include <reigen/layout/block_view.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

// Problems for attention over a ring, divided over meshes, and what to compare the ranks' parts with.

namespace ring_cases {

using namespace reigen;

/// Tokens over dp and cp, heads over tp.
inline constexpr Placement tokens_and_heads = {dp | cp, tp, Axes::none};

template <class T>
using Matrix = Sharded<T, tokens_and_heads>;

inline constexpr SequenceLayout layouts[] = {SequenceLayout::contiguous, SequenceLayout::zigzag,
                                             SequenceLayout::striped};

struct Shape {
    Index batch, queries, keys, query_heads, key_heads, head_dim, value_dim;

    std::string text() const {
        return concat("B ", batch, " Nq ", queries, " Nk ", keys, " Hq ", query_heads, " Hkv ", key_heads, " d ",
                      head_dim, " dv ", value_dim);
    }
};

/// Numbers that float holds exactly, so that all precisions work on the same problem.
inline ReferenceTensor random_tensor(Index batch, Index tokens, Index heads, Index dim, std::uint64_t id) {
    ReferenceTensor tensor(batch, tokens, heads, dim);
    const RandomStream random(11, id);
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
        tensor.values[i] = double(float(random.normal(Index(i))));
    return tensor;
}

inline ReferenceProblem problem(const Shape& s, const Mask& mask) {
    return {random_tensor(s.batch, s.queries, s.query_heads, s.head_dim, 1),
            random_tensor(s.batch, s.keys, s.key_heads, s.head_dim, 2),
            random_tensor(s.batch, s.keys, s.key_heads, s.value_dim, 3), mask, 1 / std::sqrt(double(s.head_dim))};
}

/// How a tensor lies on a mesh: sequences in a layout, of which the striped one has stripes of `stripe` tokens.
inline Sequences sequences(const ReferenceTensor& tensor, SequenceLayout layout, Index stripe = 1) {
    return {tensor.batch, tensor.tokens, layout, layout == SequenceLayout::striped ? stripe : 1};
}

/// This rank's part of a tensor.
template <class T>
Matrix<T> divided(const Mesh& mesh, const ReferenceTensor& tensor, const Sequences& s, const Partition& columns) {
    return Matrix<T>::from_global(mesh, s.rows(mesh, dp | cp), columns, [&](Index row, Index column) {
        return T(tensor(row / s.length, row % s.length, column / tensor.dim, column % tensor.dim));
    });
}

/// Queries, keys and values on a mesh, and the heads of each.
template <class T>
struct Divided {
    Sequences of_queries, of_keys;
    Index head_dim, value_dim;
    Matrix<T> q, k, v;

    Divided(const Mesh& mesh, const ReferenceProblem& p, SequenceLayout layout, Index stripe = 1)
        : Divided(mesh, p, sequences(p.q, layout, stripe), sequences(p.k, layout, stripe)) {}

    Divided(const Mesh& mesh, const ReferenceProblem& p, const Sequences& of_queries_, const Sequences& of_keys_)
        : of_queries(of_queries_),
          of_keys(of_keys_),
          head_dim(p.q.dim),
          value_dim(p.v.dim),
          q(divided<T>(mesh, p.q, of_queries, groups(p).query_partition(mesh.size(tp), head_dim))),
          k(divided<T>(mesh, p.k, of_keys, groups(p).kv_partition(mesh.size(tp), head_dim))),
          v(divided<T>(mesh, p.v, of_keys, groups(p).kv_partition(mesh.size(tp), value_dim))) {}

    static HeadGroups groups(const ReferenceProblem& p) { return {p.q.heads, p.k.heads}; }

    auto q_heads() const { return heads(q, of_queries, head_dim); }
    auto k_heads() const { return heads(k, of_keys, head_dim); }
    auto v_heads() const { return heads(v, of_keys, value_dim); }

    template <WireType Wire = WireType::unchanged>
    auto attend(const AttentionOptionsOn<Wire>& options) const {
        return ring_attention(q_heads(), k_heads(), v_heads(), options);
    }
};

/// The largest sum of |q_c k_c| scale over all pairs, and at least 1: rounding of scores is proportional to it.
inline double score_bound(const ReferenceProblem& p) {
    double q = 0, k = 0;
    for (const double x : p.q.values)
        q = std::max(q, std::abs(x));
    for (const double x : p.k.values)
        k = std::max(k, std::abs(x));
    return std::max(1.0, std::abs(p.scale) * double(p.q.dim) * q * k / 4);
}

/// Every element that this rank holds, at its global index, is within `bound` roundings of the tensor's; infinities are
/// equal.
template <class T, Placement W>
void expect_near(const Sharded<T, W>& got, const ReferenceTensor& want, double bound, const std::string& what) {
    const double eps = std::numeric_limits<T>::epsilon();
    double worst = 0;
    for (Index i = 0; i < got.local().rows(); ++i)
        for (Index j = 0; j < got.local().cols(); ++j) {
            const Index row = got.row_runs()[i], column = got.col_runs()[j];
            const double value = double(got.local()(i, j));
            const double exact = want(row / want.tokens, row % want.tokens, column / want.dim, column % want.dim);
            const double error = value == exact ? 0 : std::abs(value - exact) / (eps * bound);
            worst = std::max(worst, std::isnan(error) ? 1e300 : error);
        }
    EXPECT_LE(worst, 4) << what;
}

template <class T>
void expect_near(const Attended<T, tokens_and_heads>& got, const ReferenceOutput& want, const ReferenceProblem& p,
                 const std::string& what) {
    expect_near(got.out, want.out, 4 * score_bound(p), what + ", out");
    expect_near(got.lse, want.lse, 4 * score_bound(p), what + ", lse");
}

/// All ranks of the world along cp.
inline Mesh ring_of(const Communicator& world) {
    return {world, {{Axes::cp, world.size()}}};
}

/// Buffers that are made while 12 tokens of each rank attend to all.
template <WireType Wire = WireType::unchanged>
Index allocations_of_attention(const Communicator& world) {
    const Index tokens = 12 * world.size();
    const ReferenceProblem p = problem({1, tokens, tokens, 2, 1, 8, 8}, Mask::everything());
    const Divided<float> parts(ring_of(world), p, SequenceLayout::zigzag);
    const Index before = memory_account()->allocations();
    parts.attend(AttentionOptionsOn<Wire>{.mask = p.mask});
    return memory_account()->allocations() - before;
}

} // namespace ring_cases
