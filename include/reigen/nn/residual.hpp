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

namespace detail {

template <Placement Residual>
constexpr bool check_residual() {
    static_assert(is_residual(Residual),
                  "reigen: a layer's tokens are split over dp|cp or over dp|cp|tp; make it a layer of "
                  "residual_on_every_rank or of residual_over_tp");
    return true;
}

} // namespace detail

template <Placement Residual>
inline constexpr bool checked_residual = detail::check_residual<Residual>();

/// What one layer's forward pass gives: its result, and what its backward pass will want back.
template <class Y, class Saved>
struct Forward {
    Y y;
    Saved saved;
};

template <class Y, class Saved>
Forward(Y, Saved) -> Forward<Y, Saved>;

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
