#pragma once

#include <reigen/core/types.hpp>

#include <ostream>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How one global matrix lies over a mesh: its rows are cut over some axes, its columns over others, and over others
/// still every rank holds a summand of it. It is replicated over every axis that is not named.
///
/// A type carries it as a value, `Sharded<float, split_cols(tp)>`, so what may be done with a matrix is checked by
/// the compiler; the same struct is the run-time value of parameters, checkpoints and ledgers. Written in text as
/// {rows; cols; partial}, for instance {dp|cp; tp; }.
struct Placement {
    Axes rows = Axes::none;
    Axes cols = Axes::none;
    Axes partial = Axes::none;

    bool operator==(const Placement&) const = default;
};

inline constexpr Placement replicated = {};

constexpr Placement split_rows(Axes axes) {
    return {axes, Axes::none, Axes::none};
}

constexpr Placement split_cols(Axes axes) {
    return {Axes::none, axes, Axes::none};
}

/// The matrix is the sum of what the ranks along these axes hold.
constexpr Placement partial(Axes axes) {
    return {Axes::none, Axes::none, axes};
}

/// Both at once: `split_rows(dp | cp) | partial(tp)`.
constexpr Placement operator|(Placement a, Placement b) {
    return {a.rows | b.rows, a.cols | b.cols, a.partial | b.partial};
}

constexpr Placement transpose(Placement p) {
    return {p.cols, p.rows, p.partial};
}

/// What is left when the sum over `axes` has been taken.
constexpr Placement summed(Placement p, Axes axes) {
    return {p.rows, p.cols, p.partial - axes};
}

constexpr Placement summed(Placement p) {
    return summed(p, p.partial);
}

constexpr bool is_partial(Placement p) {
    return p.partial != Axes::none;
}

/// The axes over which the elements are divided, so that a rank holds fewer of them.
constexpr Axes split_axes(Placement p) {
    return p.rows | p.cols;
}

/// An axis cuts rows, cuts columns or is summed over, but does only one of them.
constexpr bool is_valid(Placement p) {
    return disjoint(p.rows, p.cols) && disjoint(p.rows, p.partial) && disjoint(p.cols, p.partial);
}

/// "{dp|cp; tp; }", and "replicated" for {; ; }.
inline std::string to_string(Placement p) {
    const auto part = [](Axes axes) { return axes == Axes::none ? std::string() : to_string(axes); };
    return p == replicated ? "replicated" : '{' + part(p.rows) + "; " + part(p.cols) + "; " + part(p.partial) + '}';
}

inline std::ostream& operator<<(std::ostream& out, Placement p) {
    return out << to_string(p);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
