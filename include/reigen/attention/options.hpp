#pragma once

#include <reigen/core/wire_type.hpp>
#include <reigen/kernel/score_rule.hpp>

#include <cmath>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What a caller may choose about attention, and the type in which keys and values travel. Their owner computes with
/// what it sends, and would with one rank, so all ranks see the same numbers however many they are; the backward pass
/// needs the forward's options.
///
///     ring_attention(q, k, v, {.mask = Mask::causal()});                                        // as they are
///     ring_attention(q, k, v, AttentionOptionsOn<WireType::bf16>{.mask = Mask::causal()});      // as bfloat16
template <WireType Wire>
struct AttentionOptionsOn {
    Mask mask = {};                   ///< who sees whom; everybody everything where not given
    std::optional<double> scale = {}; ///< of q.k before the softmax; 1 / sqrt(head_dim) where not given

    /// What the kernels are told, for global lengths of the queries and of the keys.
    ScoreRule rule(Index head_dim, Index queries, Index keys) const {
        return {scale.value_or(1 / std::sqrt(double(std::max<Index>(head_dim, 1)))), mask, keys - queries};
    }
};

/// With keys and values that travel as they are.
using AttentionOptions = AttentionOptionsOn<WireType::unchanged>;

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
