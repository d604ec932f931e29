#pragma once

#include <reigen/layout/placement.hpp>

#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The axes that divide tokens: dp the batch, cp each sequence.
inline constexpr Axes token_axes = dp | cp;

/// The residual stream that every rank of tp has whole.
inline constexpr Placement residual_on_every_rank = split_rows(token_axes);

/// The residual stream whose tokens are divided over tp as well: sequence parallelism.
inline constexpr Placement residual_over_tp = split_rows(token_axes | tp);

/// The two placements a residual stream may have; layers are templates of it.
constexpr bool is_residual(Placement p) {
    return p == residual_on_every_rank || p == residual_over_tp;
}

/// What one layer's forward pass gives: its result, and what its backward pass will want back.
template <class Y, class Saved>
struct Forward {
    Y y;
    Saved saved;
};

template <class Y, class Saved>
Forward(Y, Saved) -> Forward<Y, Saved>;

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
