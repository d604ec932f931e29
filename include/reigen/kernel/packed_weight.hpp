#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/kernel/pack.hpp>

#include <algorithm>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// A packed right factor, or some of its steps along k and whole packets of its columns: step k of column j is
/// data[j / width * panel + k * width + j % width], zeros behind the last column and the last k.
template <class S>
struct PackedRight {
    using Element = StoredMultiplicand<S>;
    static constexpr Index width = lanes<Accumulator<S>>;

    const Element* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index panel = 0;

    S operator()(Index k, Index j) const {
        const Element& step = data[j / width * panel + k / k_in<Element> * width + j % width];
        if constexpr (std::is_same_v<Element, S>)
            return step;
        else
            return k % 2 == 0 ? step.first : step.second;
    }

    /// `first_row` begins a step, `first_col` a packet.
    PackedRight block(Index first_row, Index first_col, Index row_count, Index col_count) const {
        return {data + first_col / width * panel + first_row / k_in<Element> * width, row_count, col_count, panel};
    }

    RightPanel<Element> panels() const { return {data, panel, width}; }
};

/// The same where it is not streamed, however few the rows of the product: what streams it is long to compile.
template <class S>
struct PackedRightForManyRows : PackedRight<S> {
    PackedRightForManyRows block(Index first_row, Index first_col, Index row_count, Index col_count) const {
        return {PackedRight<S>::block(first_row, first_col, row_count, col_count)};
    }
};

} // namespace detail

/// A right factor in the order in which products read it: packed once, multiplied with by many. `gemm` and `matmul`
/// take it in place of the matrix, and give the same bits.
///
///     const PackedWeight packed(std::move(weight));    // or (strided(weight)), which keeps the weight
///     gemm(1.f, strided(x), packed, 0.f, strided(y));
///
/// Against a matrix that products pack as they go, and read as it lies where rows are few: see bench/kernels,
/// gemm_packed.
///
/// Shapes      [k, n]; either may be 0
/// Cost        k n elements, n rounded up to whole packets (16 floats with AVX-512, 8 with AVX2); k of bfloat16 to pairs
///             where these are multiplied
template <class S>
class PackedWeight {
  public:
    /// A copy of the weight, which may have any strides. `use` is what the rank's `MemoryAccount` enters it under.
    ///
    /// Throws  ShapeError, ArgumentError for a matrix without memory
    explicit PackedWeight(const Strided<const S>& weight, MemoryUse use = MemoryUse::weights)
        : rows_(weight.rows), cols_(weight.cols) {
        detail::require_elements(weight, "PackedWeight");
        const MemoryScope scope(use);
        elements_ = Buffer<Element>(steps() * detail::padded<Accumulator<S>>(cols_), Axes::none, Readers::none);
        if (!weight.empty())
            detail::pack_right_to_keep<Element>(weight, elements_.data());
    }
    explicit PackedWeight(const Strided<S>& weight) : PackedWeight(Strided<const S>(weight)) {}

    /// Takes the place of the weight, whose memory is freed.
    explicit PackedWeight(RowMatrix<S>&& weight) : PackedWeight(strided(std::as_const(weight))) { weight.resize(0, 0); }

    Index rows() const { return rows_; }
    Index cols() const { return cols_; }

    /// The weight as it was.
    ///
    /// Throws  ShapeError
    void unpack(const Strided<S>& weight) const {
        require<ShapeError>(weight.rows == rows_ && weight.cols == cols_, "PackedWeight: ", shape(rows_, cols_),
                            " into ", shape(weight.rows, weight.cols));
        const detail::PackedRight<S> packed = factor();
        for (Index k = 0; k < rows_; ++k)
            for (Index j = 0; j < cols_; ++j)
                weight(k, j) = packed(k, j);
    }

    detail::PackedRight<S> factor() const {
        return {elements_.data(), rows_, cols_, steps() * detail::PackedRight<S>::width};
    }

  private:
    using Element = detail::StoredMultiplicand<S>;

    Index steps() const { return detail::steps_in<Element>(rows_); }

    Index rows_;
    Index cols_;
    Buffer<Element> elements_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
