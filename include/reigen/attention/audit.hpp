#pragma once

#include <reigen/attention/checks.hpp>
#include <reigen/attention/ring_forward.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/score_rule.hpp>
#include <reigen/layout/audit.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// A number as others receive it.
template <class T>
double as_sent(T number, WireType wire) {
    return wire == WireType::bf16 ? double(round_to_bfloat16(float(number))) : double(number);
}

/// One query of one sequence, in all heads of this rank, against the keys that the ranks of its ring hold: the softmax
/// in double by its definition.
class ReferenceQuery {
  public:
    ReferenceQuery(Index heads, Index head_dim, Index value_dim)
        : heads_(heads),
          head_dim_(head_dim),
          value_dim_(value_dim),
          query_(std::size_t(heads * head_dim)),
          maximum_(std::size_t(heads), -std::numeric_limits<double>::infinity()),
          sums_(std::size_t(heads * (1 + 2 * value_dim))) {}

    /// Of the rank that holds the query.
    template <class T>
    void set_query(HeadsView<const T> q, Index batch, Index token) {
        for (Index h = 0; h < heads_; ++h)
            for (Index c = 0; c < head_dim_; ++c)
                query_[std::size_t(h * head_dim_ + c)] = double(q.at(batch, token, h)[c]);
    }

    /// This rank's keys that the query sees. Collective over the ring.
    template <class T>
    void attend(const Communicator& ring, HeadsView<const T> k, HeadsView<const T> v, Index batch,
                const std::vector<Index>& tokens, double scale, WireType wire) {
        ring.all_reduce(query_);
        std::vector<double> scores(std::size_t(heads_) * tokens.size());
        for (Index h = 0; h < heads_; ++h)
            for (std::size_t j = 0; j < tokens.size(); ++j) {
                double& score = scores[std::size_t(h) * tokens.size() + j];
                score = scale * dot(h, k.at(batch, tokens[j], key_head(h, k.heads)), wire);
                maximum_[std::size_t(h)] = std::max(score, maximum_[std::size_t(h)]);
            }
        ring.all_reduce(maximum_, Reduction::max);
        for (Index h = 0; h < heads_; ++h)
            for (std::size_t j = 0; j < tokens.size(); ++j)
                add(h, std::exp(scores[std::size_t(h) * tokens.size() + j] - maximum_[std::size_t(h)]),
                    v.at(batch, tokens[j], key_head(h, v.heads)), wire);
        ring.all_reduce(sums_);
    }

    double out(Index h, Index c) const { return sum(h) == 0 ? 0 : head(h)[1 + c] / sum(h); }
    double magnitude(Index h, Index c) const { return sum(h) == 0 ? 0 : head(h)[1 + value_dim_ + c] / sum(h); }
    double lse(Index h) const {
        return sum(h) == 0 ? maximum_[std::size_t(h)] : maximum_[std::size_t(h)] + std::log(sum(h));
    }

  private:
    Index key_head(Index h, Index key_heads) const { return h / (heads_ / key_heads); }

    template <class T>
    double dot(Index h, const T* key, WireType wire) const {
        double result = 0;
        for (Index c = 0; c < head_dim_; ++c)
            result += query_[std::size_t(h * head_dim_ + c)] * as_sent(key[c], wire);
        return result;
    }

    template <class T>
    void add(Index h, double weight, const T* value, WireType wire) {
        double* const of_head = head(h);
        of_head[0] += weight;
        for (Index c = 0; c < value_dim_; ++c) {
            of_head[1 + c] += weight * as_sent(value[c], wire);
            of_head[1 + value_dim_ + c] += weight * std::abs(as_sent(value[c], wire));
        }
    }

    double* head(Index h) { return &sums_[std::size_t(h * (1 + 2 * value_dim_))]; }
    const double* head(Index h) const { return &sums_[std::size_t(h * (1 + 2 * value_dim_))]; }
    double sum(Index h) const { return head(h)[0]; }

    Index heads_;
    Index head_dim_;
    Index value_dim_;
    std::vector<double> query_;
    std::vector<double> maximum_;
    std::vector<double> sums_; // of each head: weights, weighted values, their magnitudes
};

/// Local tokens of the keys that a query sees.
inline std::vector<Index> seen_tokens(const Runs& keys, Interval seen) {
    std::vector<Index> tokens;
    for (Index token = 0; token < keys.size(); ++token)
        if (seen.contains(keys[token]))
            tokens.push_back(token);
    return tokens;
}

/// Compares one row of the output and of the lse, on the rank that holds it.
template <ShardedLike Out, ShardedLike Lse>
void compare_query(AuditTally& tally, const ReferenceQuery& reference, const Out& out, const Lse& lse, Index local_row,
                   Index row, Index value_dim) {
    const Runs& columns = out.col_runs();
    for (Index h = 0; h < lse.strided().cols; ++h) {
        for (Index c = 0; c < value_dim; ++c) {
            const Index col = h * value_dim + c;
            tally.compare(double(out.strided()(local_row, col)), reference.out(h, c), reference.magnitude(h, c), row,
                          columns[col]);
        }
        const double lse_here = double(lse.strided()(local_row, h));
        tally.compare(lse_here, reference.lse(h), 1 + std::abs(reference.lse(h)), row, columns[h * value_dim]);
    }
}

} // namespace detail

/// Recomputes some rows of `auto [out, lse] = ring_attention(q, k, v, options)` in double over the ranks of the ring,
/// in all their heads, and says how far output and lse are from them. The lse's error is taken over 1 + |lse|.
///
/// Shapes      q, k, v, out, lse as for `ring_attention`
/// Cost        4 K Nk Hq d flops in double over the ranks for K rows; three all-reduces for each of them
/// Collective  over the whole mesh
/// Throws      ShapeError, ArgumentError on every rank before any message
template <detail::HeadsLike Q, detail::HeadsLike K, detail::HeadsLike V, ShardedLike Out, ShardedLike Lse,
          WireType Wire = WireType::unchanged>
AuditReport audit_attention(const Q& q, const K& k, const V& v, const Out& out, const Lse& lse,
                            const AttentionOptionsOn<Wire>& options = {}, const AuditOptions& audit = {}) {
    static_assert(Q::placement == K::placement && Q::placement == V::placement && Q::placement == placement_of<Out> &&
                      Q::placement == placement_of<Lse>,
                  "reigen: all arguments of the attention's audit need the placement of the queries");
    const detail::ConstHeads<Q>& queries = q;
    const detail::ConstHeads<K>& keys = k;
    const detail::ConstHeads<V>& values = v;
    detail::check_attention("audit_attention", queries, keys, values, options);
    detail::check_over_queries("audit_attention", "out", out.spec(), queries, values.head_dim());
    detail::check_over_queries("audit_attention", "lse", lse.spec(), queries, 1);
    const Sequences& sequences = queries.sequences();
    const ScoreRule rule = options.rule(queries.head_dim(), sequences.length, keys.sequences().length);
    const Range batch =
        contains(Q::placement.rows, dp) ? sequences.local_batch(queries.spec().mesh) : Range{0, sequences.batch};
    detail::AuditTally tally;
    for (const Index row : detail::audited_rows(audit, sequences.tokens())) {
        const Index sequence = row / sequences.length - batch.first;
        const Index position = row % sequences.length;
        if (sequence < 0 || sequence >= batch.count || queries.view().heads == 0)
            continue; // nor does any other rank of this ring have it
        detail::ReferenceQuery reference(queries.view().heads, queries.head_dim(), values.head_dim());
        const auto token = queries.positions().find(position);
        if (token)
            reference.set_query(queries.view(), sequence, *token);
        reference.attend(queries.ring(), keys.view(), values.view(), sequence,
                         detail::seen_tokens(keys.positions(), rule.mask.seen_from(position + rule.offset)), rule.scale,
                         Wire);
        if (token)
            detail::compare_query(tally, reference, out, lse, sequence * queries.view().tokens + *token, row,
                                  values.head_dim());
    }
    return tally.report(queries.spec().mesh);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
