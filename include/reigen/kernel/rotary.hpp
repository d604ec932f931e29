#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/core/error.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/sizes.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/lanes.hpp>

#include <cmath>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

inline Index half_of_head(Index head_dim, double base) {
    require(head_dim >= 0 && head_dim % 2 == 0, "rotary: head_dim is ", head_dim, ", want an even number");
    require(std::isfinite(base) && base > 0, "rotary: the base is ", base, ", want a positive number");
    return head_dim / 2;
}

} // namespace detail

/// Cosines and sines of position / base^(2i / head_dim), i < head_dim / 2, for the positions a rank holds.
///
/// Source  Su et al., "RoFormer: Enhanced transformer with rotary position embedding", 2021, section 3.2; the pairs are
///         (i, i + head_dim / 2)
template <class T>
class RotaryTable {
  public:
    RotaryTable(const Runs& positions, Index head_dim, double base = 10000)
        : tokens_(positions.size()),
          half_(detail::half_of_head(head_dim, base)),
          cosines_(detail::product_of_sizes(tokens_, half_, "RotaryTable")),
          sines_(tokens_ * half_) {
        Index at = 0;
        for (const Run& run : positions.pieces())
            for (Index t = 0; t < run.count; ++t)
                for (Index i = 0; i < half_; ++i, ++at) {
                    const double angle = double(run[t]) * std::pow(base, -double(i) / double(half_));
                    cosines_[at] = T(std::cos(angle));
                    sines_[at] = T(std::sin(angle));
                }
    }

    Index tokens() const { return tokens_; }
    Index head_dim() const { return 2 * half_; }
    const T* cosines(Index token) const { return cosines_.data() + token * half_; }
    const T* sines(Index token) const { return sines_.data() + token * half_; }

  private:
    Index tokens_;
    Index half_;
    Buffer<T> cosines_;
    Buffer<T> sines_;
};

enum class Rotation { forwards, backwards };

namespace detail {

template <class T>
void turn_head(T* head, Index half, const T* cosines, const T* sines, Rotation rotation) {
    const auto sign = Lanes<T>::all(rotation == Rotation::forwards ? T(1) : T(-1));
    for_each_register<T>(half, [=](Index i, Index n) {
        const auto a = Lanes<T>::load(head + i, n);
        const auto b = Lanes<T>::load(head + half + i, n);
        const auto c = Lanes<T>::load(cosines + i, n);
        const auto s = Lanes<T>::load(sines + i, n) * sign;
        const auto zero = Lanes<T>::all(0);
        fused(a, c, zero - b * s).store(head + i, n);
        fused(a, s, b * c).store(head + half + i, n);
    });
}

} // namespace detail

/// Turns every head of every row in place, forwards or, as the adjoint, backwards.
///
/// Shapes      x [batch * tokens, heads * head_dim], batch-major; the table's positions are those of the tokens
template <class T>
void rotary(Strided<T> x, const RotaryTable<T>& table, Rotation rotation) {
    const Index head_dim = table.head_dim();
    require<ShapeError>(head_dim == 0 || x.cols % head_dim == 0, "rotary: ", x.cols, " columns are not whole heads of ",
                        head_dim);
    require<ShapeError>(x.rows == 0 || (table.tokens() > 0 && x.rows % table.tokens() == 0), "rotary: ", x.rows,
                        " rows are not whole sequences of ", table.tokens(), " tokens");
    require<ShapeError>(x.col_stride == 1 || x.empty(), "rotary: the elements of a row must be neighbours");
    for (Index row = 0; row < x.rows; ++row) {
        const Index token = row % table.tokens();
        for (Index first = 0; first < x.cols; first += head_dim)
            detail::turn_head(&x(row, first), head_dim / 2, table.cosines(token), table.sines(token), rotation);
    }
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
