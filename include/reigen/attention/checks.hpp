#pragma once

#include <reigen/attention/heads.hpp>
#include <reigen/attention/options.hpp>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// "B 2, N 8, 4 heads of 16"
template <class S, Placement Where>
std::string describe_heads(const Heads<S, Where>& x) {
    return concat("B ", x.sequences().batch, ", N ", x.sequences().length, ", ", x.global_heads(), " heads of ",
                  x.head_dim());
}

/// A rank's query heads share its key heads evenly, each with the key head it is meant to read.
inline void check_groups(const char* caller, int rank, Index group, const std::vector<Index>& q,
                         const std::vector<Index>& k, const std::vector<Index>& v) {
    const auto of = [&](const std::vector<Index>& heads) {
        return heads.empty() ? std::string("none") : concat(heads.front(), " to ", heads.back());
    };
    bool fits = k == v && k.empty() == q.empty() && (k.empty() || q.size() % k.size() == 0);
    for (std::size_t i = 0; fits && i < q.size(); ++i)
        fits = q[i] / group == k[i / (q.size() / k.size())];
    require<ShapeError>(fits, caller, ": rank ", rank, " along the heads has query heads ", of(q), ", key heads ",
                        of(k), " and value heads ", of(v), ", with ", group, " query heads to a key head");
}

/// Throws on every rank where queries, keys and values do not belong together; looks only at what all ranks know.
template <class S, Placement Where, WireType Wire>
void check_attention(const char* caller, const Heads<S, Where>& q, const Heads<S, Where>& k, const Heads<S, Where>& v,
                     const AttentionOptionsOn<Wire>& options) {
    const auto all = [&] {
        return concat(": q is ", describe_heads(q), "; k is ", describe_heads(k), "; v is ", describe_heads(v));
    };
    require<ShapeError>(q.spec().mesh == k.spec().mesh && k.spec().mesh == v.spec().mesh, caller,
                        ": q, k and v lie on different meshes");
    require<ShapeError>(q.sequences().batch == k.sequences().batch && k.sequences().batch == v.sequences().batch,
                        caller, all(), ": the batches differ");
    require<ShapeError>(q.head_dim() == k.head_dim(), caller, all(), ": queries and keys differ in head_dim");
    require<ShapeError>(k.spec().row_partition == v.spec().row_partition && k.global_heads() == v.global_heads(),
                        caller, all(), ": keys and values differ in tokens or heads");
    require<ShapeError>(k.global_heads() > 0 && q.global_heads() % k.global_heads() == 0, caller, all(),
                        ": query heads cannot be grouped over key heads");
    for (int rank = 0; rank < q.spec().col_partition.ranks(); ++rank)
        check_groups(caller, rank, q.global_heads() / k.global_heads(), q.heads_of(rank), k.heads_of(rank),
                     v.heads_of(rank));
    check_mask(options.mask, caller);
    const double exponent = options.scale.value_or(0) * std::numbers::log2e; // what the kernels multiply queries by
    require(std::isfinite(Accumulator<S>(exponent)), caller, ": scale is ", *options.scale);
}

/// Throws on every rank where a matrix is not over the queries' tokens with `columns` columns for each of their heads.
template <class S, Placement Where>
void check_over_queries(const char* caller, const char* name, const ShardSpec& spec, const Heads<const S, Where>& q,
                        Index columns) {
    require<ShapeError>(spec.mesh == q.spec().mesh && spec.row_partition == q.spec().row_partition &&
                            spec.col_partition == resized_heads(q.spec().col_partition, q.head_dim(), columns),
                        caller, ": ", name, " is ", shape(spec.rows(), spec.cols()),
                        " or lies on other ranks than the queries want: ",
                        shape(q.spec().rows(), q.global_heads() * columns), " with their tokens and heads");
}

/// Has the ranks of the ring compare, where they compare, what decides which of them sends what.
template <class S, Placement Where, WireType Wire>
void agree_on_attention(const char* caller, const Heads<S, Where>& q, const Heads<S, Where>& k,
                        const Heads<S, Where>& v, const AttentionOptionsOn<Wire>& options) {
    k.ring().agree(caller, [&] {
        const auto layout = [](const Sequences& sequences) {
            return concat(to_string(sequences.layout), " in stripes of ", sequences.stripe);
        };
        return std::vector<Field>{{"q:", describe_heads(q)},
                                  {"k:", describe_heads(k)},
                                  {"v:", describe_heads(v)},
                                  {"layout", layout(q.sequences())},
                                  {"keys", layout(k.sequences())},
                                  {"mask", to_string(options.mask)},
                                  {"scale", options.scale.value_or(0)},
                                  {"wire", to_string(Wire)}};
    });
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
