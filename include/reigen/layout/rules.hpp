#pragma once

#include <reigen/layout/placement.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

// Which operations placements allow, and what comes out. With R = dp|cp, written {rows; cols; partial}:
//
//                  result                     dX             dW           db, dgamma
//   column         {R; tp; }                  {R; ; tp}      { ; tp; R}   { ; tp; R}
//   row            {R; ; tp} -> {R; ; }       {R; tp; }      {tp; ; R}    { ; ; R}
//   norm           {R; ; }                    {R; ; }                     { ; ; R}
//   embedding      {R; ; tp} -> {R; ; }                      {tp; ; R}
//   head E^T       {R; tp; }                  {R; ; tp}      {tp; ; R}
//
// A partial may be transposed, scaled, added to an equal partial, or summed; nothing else.

/// Whether both operands of a product are cut alike along the axis they share.
constexpr bool shared_axis_agrees(Placement a, Placement b) {
    return a.cols == b.rows;
}

/// Whether no mesh axis would cut both the rows and the columns of a product.
constexpr bool result_axes_are_disjoint(Placement a, Placement b) {
    return disjoint(a.rows, b.cols);
}

constexpr bool can_multiply(Placement a, Placement b) {
    return is_valid(a) && is_valid(b) && !is_partial(a) && !is_partial(b) && shared_axis_agrees(a, b) &&
           result_axes_are_disjoint(a, b);
}

/// Of a b, where `can_multiply(a, b)`: a sum over the axes that cut what they share.
constexpr Placement product(Placement a, Placement b) {
    return {a.rows, b.cols, a.cols};
}

/// Whether C = alpha A B + beta C can be done for a product of this placement: C has it too (then each rank adds its
/// summand), or is what the product is after its sum, cut further over the axes of that sum or not.
constexpr bool can_accumulate(Placement product, Placement c) {
    const Axes sum = product.partial;
    return c == product ||
           (is_valid(c) && !is_partial(c) && c.rows - sum == product.rows && c.cols - sum == product.cols);
}

/// A sum down the columns. A parameter that heads share on split columns sums over rows|cols: see `shared_sums`.
constexpr bool can_sum(Placement x) {
    return is_valid(x) && !is_partial(x);
}

constexpr Placement column_sums(Placement x) {
    return {Axes::none, x.cols, x.rows};
}

/// A sum along the rows. A maximum would have no partial: it is reduced at once.
constexpr Placement row_sums(Placement x) {
    return {x.rows, Axes::none, x.cols};
}

/// Column sums of which all columns' ranks hold a summand: the gradient of one parameter used by all split heads.
constexpr Placement shared_sums(Placement x) {
    return {Axes::none, Axes::none, x.rows | x.cols};
}

/// Rows of a table by number: every rank finds those it holds, the others are zeros, the sum has them all.
constexpr bool can_look_up(Placement ids, Placement table) {
    return !is_partial(ids) && !is_partial(table) && ids.cols == Axes::none && disjoint(ids.rows, table.rows) &&
           disjoint(ids.rows, table.cols) && disjoint(table.rows, table.cols);
}

constexpr Placement lookup(Placement ids, Placement table) {
    return {ids.rows, table.cols, table.rows};
}

/// A replicated matrix is never added to a partial one: it would be counted once a rank.
constexpr bool can_add(Placement x, Placement y) {
    return is_valid(x) && x == y;
}

/// A bias or a scale: one row, cut as the columns it is applied to; never on a partial, which would count it once
/// a rank.
constexpr bool can_apply_row(Placement x, Placement v) {
    return is_valid(x) && !is_partial(x) && !is_partial(v) && v.rows == Axes::none && v.cols == x.cols;
}

/// The placement of a gradient with respect to x: what x holds as a summand, its gradient holds as a copy.
constexpr Placement gradient_placement(Placement x) {
    return summed(x);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
