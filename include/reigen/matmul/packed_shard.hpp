#pragma once

#include <reigen/kernel/packed_weight.hpp>
#include <reigen/matmul/matmul.hpp>

#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// This rank's part of a weight in the order in which products read it, packed once and multiplied with by many:
/// `matmul(x, packed)` in place of `matmul(x, w)`, in the same bits.
///
///     const PackedShard packed(std::move(w));    // or (w), which keeps w
///     const auto y = matmul(x, packed);
///
/// Shapes      [k, n], global, placed and divided as the weight
/// Cost        the weight's elements on this rank, their columns rounded up to whole packets
/// Collective  no
template <class S, Placement Where>
class PackedShard : public detail::Placed<Where> {
    using Base = detail::Placed<Where>;
    static_assert(!is_partial(Where), "reigen: a partial sum is not packed; sum it first: PackedShard(sum(w))");

  public:
    using Scalar = S;

    explicit PackedShard(const ShardedView<const S, Where>& weight) : Base(weight.spec()), local_(weight.strided()) {}
    explicit PackedShard(const ShardedView<S, Where>& weight) : PackedShard(ShardedView<const S, Where>(weight)) {}
    explicit PackedShard(const Sharded<S, Where>& weight) : PackedShard(weight.view()) {}

    /// Takes the place of the weight, whose memory is freed.
    explicit PackedShard(Sharded<S, Where>&& weight) : PackedShard(std::as_const(weight)) {
        std::move(weight).release();
    }

    const PackedWeight<S>& local() const { return local_; }

    /// The weight as it was.
    Sharded<S, Where> unpack() const {
        Sharded<S, Where> weight(this->spec_);
        local_.unpack(weight.strided());
        return weight;
    }

  private:
    PackedWeight<S> local_;
};

/// C = A B with a packed B, in the bits that the matrix gives.
///
/// Shapes      a [m, k], b [k, n], global; a's columns divided as b's rows; the result [m, n] is placed as
///             product(A, B) and divided as a's rows and b's columns
/// Cost        2 m n k flops over the local sizes; up to 16 local rows, one stream through the weight
/// Collective  no
/// Throws      ShapeError on every rank: k differs, or is divided differently, or items of it are held twice
/// Order       as `matmul` of sharded matrices
template <ShardedLike A, class S, Placement Where>
auto matmul(const A& a, const PackedShard<S, Where>& b) {
    return detail::multiply(a, b, b.local(), "");
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
