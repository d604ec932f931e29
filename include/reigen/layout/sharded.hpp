#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/layout/shard_spec.hpp>

#include <type_traits>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {
template <class Scalar, Placement Where>
using StoredNumber = std::conditional_t<is_partial(Where), Accumulator<Scalar>, std::remove_const_t<Scalar>>;

/// What every sharded matrix says of itself: how it lies over the ranks.
template <Placement Where>
class Placed {
    static_assert(is_valid(Where), "reigen: an axis may cut rows, cut columns or be summed over, but only one of them");

  public:
    static constexpr Placement placement = Where;

    const ShardSpec& spec() const { return spec_; }
    const Mesh& mesh() const { return spec_.mesh; }
    Index rows() const { return spec_.rows(); }
    Index cols() const { return spec_.cols(); }
    const Partition& row_partition() const { return spec_.row_partition; }
    const Partition& col_partition() const { return spec_.col_partition; }
    const Runs& row_runs() const { return spec_.row_runs(); }
    const Runs& col_runs() const { return spec_.col_runs(); }

  protected:
    Placed() = default;

    /// The placement stands in the type and in the spec: they are one.
    explicit Placed(ShardSpec spec) : spec_(std::move(spec)) {
        require(spec_.placement == Where, "a matrix of type ", Where, " with the specification of one that is ",
                spec_.placement);
    }

    ShardSpec spec_;
};
} // namespace detail

/// What the elements are held in: a partial sum of bfloat16 is held in float and rounded once, after the sum.
template <class Scalar, Placement Where>
using Stored = std::conditional_t<std::is_const_v<Scalar>, const detail::StoredNumber<Scalar, Where>,
                                  detail::StoredNumber<Scalar, Where>>;

/// This rank's part of a global matrix, in memory of somebody else, with any strides. `S` may be const.
template <class S, Placement Where>
class ShardedView : public detail::Placed<Where> {
    using Base = detail::Placed<Where>;
    using Base::spec_;

  public:
    using Scalar = std::remove_const_t<S>;
    using Element = Stored<S, Where>;

    ShardedView() = default;

    /// `local` holds this rank's rows and columns in the order of its runs.
    ///
    /// Throws  ShapeError on the ranks where `local` is not what the partitions say
    ShardedView(ShardSpec spec, Strided<Element> local) : Base(std::move(spec)), local_(local) {
        detail::require_elements(local, "ShardedView");
        require<ShapeError>(local.rows == spec_.local_rows() && local.cols == spec_.local_cols(),
                            "ShardedView: local is ", shape(local.rows, local.cols), ", the partitions give this rank ",
                            shape(spec_.local_rows(), spec_.local_cols()));
    }

    ShardedView(const Mesh& mesh, const Extent& rows, const Extent& cols, Strided<Element> local)
        : ShardedView(ShardSpec(mesh, Where, rows, cols), local) {}

    Strided<Element> strided() const { return local_; }
    auto local() const { return local_.map(); }
    ShardedView view() const { return *this; }

    operator ShardedView<const Scalar, Where>() const
        requires(!std::is_const_v<S>)
    {
        return {spec_, local_};
    }

  private:
    Strided<Element> local_;
};

/// This rank's part of a global matrix and the memory it is in, row after row without gaps. Moves; copied by `clone`.
///
///     Sharded<float, split_cols(tp)> w(mesh, 64, 256);      // 64 x 256, its columns divided evenly over tp
template <class S, Placement Where>
class Sharded : public detail::Placed<Where> {
    using Base = detail::Placed<Where>;
    using Base::spec_;
    static_assert(!std::is_const_v<S>);

  public:
    using Scalar = S;
    using Element = Stored<S, Where>;

    Sharded() = default;

    /// Uninitialised elements.
    Sharded(const Mesh& mesh, const Extent& rows, const Extent& cols) : Sharded(ShardSpec(mesh, Where, rows, cols)) {}

    explicit Sharded(ShardSpec spec)
        : Base(std::move(spec)), buffer_(spec_.local_rows() * spec_.local_cols(), split_axes(Where)) {}

    /// Takes over memory that holds this rank's part, row after row.
    Sharded(ShardSpec spec, Buffer<Element> local) : Base(std::move(spec)), buffer_(std::move(local)) {
        const Index want = spec_.local_rows() * spec_.local_cols();
        require<ShapeError>(buffer_.size() == want, "Sharded: ", buffer_.size(), " elements for a local part of ",
                            want);
    }

    static Sharded zeros(const Mesh& mesh, const Extent& rows, const Extent& cols) {
        Sharded result(mesh, rows, cols);
        result.local().setZero();
        return result;
    }

    /// The matrix whose element (i, j), in global indices, is `value(i, j)`: a function, or a dense matrix that every
    /// rank has. A partial has it on the first of its ranks and zeros on the others.
    template <class Function>
    static Sharded from_global(const Mesh& mesh, const Extent& rows, const Extent& cols, const Function& value) {
        Sharded result = zeros(mesh, rows, cols);
        if constexpr (requires { value.derived(); })
            require<ShapeError>(value.rows() == result.rows() && value.cols() == result.cols(),
                                "from_global: the matrix is ", shape(value.rows(), value.cols()),
                                ", its partitions are for ", shape(result.rows(), result.cols()));
        if (mesh.rank(Where.partial) == 0)
            result.fill(value);
        return result;
    }

    template <class Derived>
    static Sharded from_global(const Mesh& mesh, const Eigen::MatrixBase<Derived>& dense) {
        return from_global(mesh, dense.rows(), dense.cols(), dense);
    }

    Element* data() { return buffer_.data(); }
    const Element* data() const { return buffer_.data(); }

    Eigen::Map<RowMatrix<Element>, Eigen::AlignedMax> local() {
        return {buffer_.data(), spec_.local_rows(), spec_.local_cols()};
    }
    Eigen::Map<const RowMatrix<Element>, Eigen::AlignedMax> local() const {
        return {buffer_.data(), spec_.local_rows(), spec_.local_cols()};
    }

    Strided<Element> strided() { return strided_over(buffer_.data()); }
    Strided<const Element> strided() const { return strided_over(buffer_.data()); }

    ShardedView<S, Where> view() { return {spec_, strided()}; }
    ShardedView<const S, Where> view() const { return {spec_, strided()}; }

    Sharded clone() const { return Sharded(spec_, buffer_.clone()); }

    /// Gives the memory away; what is left may only be assigned to or destroyed.
    Buffer<Element> release() && { return std::move(buffer_); }

  private:
    template <class T>
    Strided<T> strided_over(T* data) const {
        const Index cols = spec_.local_cols();
        return {data, spec_.local_rows(), cols, cols, 1};
    }

    template <class Function>
    void fill(const Function& value) {
        auto target = local();
        const Runs& row_indices = spec_.row_runs();
        const Runs& col_indices = spec_.col_runs();
        for (Index i = 0; i < target.rows(); ++i)
            for (Index j = 0; j < target.cols(); ++j)
                target(i, j) = Element(value(row_indices[i], col_indices[j]));
    }

    Buffer<Element> buffer_;
};

namespace detail {
template <Placement Where>
void takes_placed(const Placed<Where>&);

template <class X>
concept IsPlaced = requires(const X& x) { takes_placed(x); };
} // namespace detail

/// A `Sharded` or a `ShardedView`.
template <class X>
concept ShardedLike = detail::IsPlaced<X> && requires(X& x) { x.view(); };

template <detail::IsPlaced X>
using ScalarOf = typename std::remove_cvref_t<X>::Scalar;

template <detail::IsPlaced X>
inline constexpr Placement placement_of = std::remove_cvref_t<X>::placement;

/// The same memory, seen with rows and columns exchanged.
template <ShardedLike X>
auto transpose(X&& x) {
    const auto view = x.view();
    using View = std::remove_const_t<decltype(view)>;
    using S = std::conditional_t<std::is_const_v<typename View::Element>, const ScalarOf<X>, ScalarOf<X>>;
    return ShardedView<S, transpose(View::placement)>(transpose(view.spec()), view.strided().transpose());
}

/// Your own Eigen matrix, map or block, as this rank's part of a global matrix; nothing is copied, so it must outlive
/// the view. Sizes are global; they may be left out where nothing is split.
///
///     auto w = shard<split_cols(tp)>(mesh, my_part, 64, 256);
template <Placement Where, class Matrix>
auto shard(const Mesh& mesh, Matrix&& local, const Extent& rows, const Extent& cols) {
    using Plain = std::remove_cvref_t<Matrix>;
    static_assert(std::is_lvalue_reference_v<Matrix> || !std::is_base_of_v<Eigen::PlainObjectBase<Plain>, Plain>,
                  "reigen: shard(mesh, matrix) looks at memory it does not own; keep the matrix in a variable");
    const auto elements = strided(local);
    using Element = std::remove_pointer_t<decltype(elements.data)>;
    return ShardedView<Element, Where>(mesh, rows, cols, elements);
}

template <Placement Where, class Matrix>
auto shard(const Mesh& mesh, Matrix&& local) {
    static_assert(
        split_axes(Where) == Axes::none,
        "reigen: this placement splits the matrix; write shard<...>(mesh, local, rows, cols) with the global sizes");
    return shard<Where>(mesh, std::forward<Matrix>(local), local.rows(), local.cols());
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
