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
template <class S, Placement Where>
class PackedShard {
    static_assert(!is_partial(Where), "reigen: a partial sum is not packed; sum it first: PackedShard(sum(w))");

  public:
    using Scalar = S;
    static constexpr Placement placement = Where;

    explicit PackedShard(const ShardedView<const S, Where>& weight) : spec_(weight.spec()), local_(weight.strided()) {}
    explicit PackedShard(const ShardedView<S, Where>& weight) : PackedShard(ShardedView<const S, Where>(weight)) {}
    explicit PackedShard(const Sharded<S, Where>& weight) : PackedShard(weight.view()) {}

    /// Takes the place of the weight, whose memory is freed.
    explicit PackedShard(Sharded<S, Where>&& weight) : PackedShard(std::as_const(weight)) {
        std::move(weight).release();
    }

    const ShardSpec& spec() const { return spec_; }
    const Mesh& mesh() const { return spec_.mesh; }
    Index rows() const { return spec_.rows(); }
    Index cols() const { return spec_.cols(); }
    const Partition& row_partition() const { return spec_.row_partition; }
    const Partition& col_partition() const { return spec_.col_partition; }
    const PackedWeight<S>& local() const { return local_; }

    /// The weight as it was.
    Sharded<S, Where> unpack() const {
        Sharded<S, Where> weight(spec_);
        local_.unpack(weight.strided());
        return weight;
    }

  private:
    ShardSpec spec_;
    PackedWeight<S> local_;
};

/// C = A B with a packed B. Shapes, costs, errors and bits as `matmul` of sharded matrices.
template <ShardedLike A, class S, Placement Where>
auto matmul(const A& a, const PackedShard<S, Where>& b) {
    using Weight = PackedShard<S, Where>;
    static_assert(std::is_same_v<ScalarOf<A>, S>, "reigen: matmul multiplies matrices of one scalar type");
    detail::check_product<placement_of<A>, Where>();
    detail::require_factors(a.spec(), b.spec(), "matmul");
    detail::require_no_copies(a.col_partition(), "matmul", "");
    constexpr Placement placement = product(placement_of<A>, Weight::placement);
    Sharded<S, placement> c({a.mesh(), placement, a.row_partition(), b.col_partition()});
    using T = Accumulator<S>;
    gemm(T(1), a.strided(), b.local(), T(0), c.strided());
    return c;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
