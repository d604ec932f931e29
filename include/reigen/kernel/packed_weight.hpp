#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/kernel/pack.hpp>

#include <algorithm>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// A packed right factor, or some of its rows and whole packets of its columns: element (k, j) is
/// data[j / width * panel + k * width + j % width], zeros behind the last column.
template <class S>
struct PackedRight {
    static constexpr Index width = lanes<Accumulator<S>>;

    const S* data = nullptr;
    Index rows = 0;
    Index cols = 0;
    Index panel = 0;

    const S& operator()(Index k, Index j) const { return data[j / width * panel + k * width + j % width]; }

    /// `first_col` begins a packet.
    PackedRight block(Index first_row, Index first_col, Index row_count, Index col_count) const {
        return {data + first_col / width * panel + first_row * width, row_count, col_count, panel};
    }

    RightPanel<S> panels() const { return {data, panel, width}; }
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
/// Cost        k n elements, n rounded up to whole packets (16 floats with AVX-512, 8 with AVX2)
template <class S>
class PackedWeight {
  public:
    /// A copy of the weight, which may have any strides.
    ///
    /// Throws  ShapeError, ArgumentError for a matrix without memory
    explicit PackedWeight(const Strided<const S>& weight) : rows_(weight.rows), cols_(weight.cols) {
        detail::require_elements(weight, "PackedWeight");
        const MemoryScope scope(MemoryUse::weights);
        elements_ = Buffer<S>(rows_ * detail::padded<Accumulator<S>>(cols_));
        if (!weight.empty())
            detail::pack_right_as_stored<S>(weight, elements_.data());
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
        return {elements_.data(), rows_, cols_, rows_ * detail::PackedRight<S>::width};
    }

  private:
    Index rows_;
    Index cols_;
    Buffer<S> elements_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
