#pragma once

#include <reigen/kernel/heads_view.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/layout/sharded.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A token matrix of which every `head_dim` columns are a head, as attention reads it: this rank's vectors where they
/// lie, and who holds which positions of the sequences. `S` may be const.
template <class S, Placement Where>
class Heads {
    static_assert(!is_partial(Where), "reigen: attention of a partial sum is not the sum of attentions; write "
                                      "redistribute<summed(placement)>(x) first");
    static_assert(contains(dp | cp, Where.rows), "reigen: attention needs all tokens of this rank's sequences; gather "
                                                 "rows that are split over tp first, with redistribute");
    static_assert(disjoint(Where.cols, dp | cp), "reigen: heads may be split over tp, not over dp or cp, which split "
                                                 "the tokens");

  public:
    using Scalar = std::remove_const_t<S>;
    static constexpr Placement placement = Where;
    /// The axis along which keys and values go round; none where every rank has whole sequences.
    static constexpr Axes ring_axis = Where.rows & cp;

    Heads(const ShardedView<S, Where>& matrix, const Sequences& sequences, Index head_dim)
        : spec_(matrix.spec()), sequences_(sequences), head_dim_(head_dim) {
        const Strided<S> local = matrix.strided();
        check(local);
        const Index tokens = positions().size();
        const Index batch = local_batch();
        view_ = {local.data,       batch,   tokens, local.cols / head_dim, head_dim, tokens * local.row_stride,
                 local.row_stride, head_dim};
    }

    HeadsView<S> view() const { return view_; }
    const ShardSpec& spec() const { return spec_; }
    const Sequences& sequences() const { return sequences_; }
    const Communicator& ring() const { return spec_.mesh[ring_axis]; }

    Index head_dim() const { return head_dim_; }
    /// Of the whole matrix.
    Index global_heads() const { return spec_.cols() / head_dim_; }

    /// Positions that a rank of the ring holds of each sequence, in its order.
    Runs positions(int ring_rank) const { return sequences_.positions(spec_.mesh.size(ring_axis), ring_rank); }
    Runs positions() const { return positions(spec_.mesh.rank(ring_axis)); }

    /// The global heads that a rank along the columns' axes holds, in its order.
    std::vector<Index> heads_of(int column_rank) const {
        std::vector<Index> result;
        for (const Run& piece : spec_.col_partition.runs(column_rank).pieces())
            for (Index i = 0; i < piece.count; i += head_dim_)
                result.push_back(piece[i] / head_dim_);
        return result;
    }

    operator Heads<const Scalar, Where>() const
        requires(!std::is_const_v<S>)
    {
        return {ShardedView<const Scalar, Where>(spec_, strided()), sequences_, head_dim_};
    }

  private:
    Strided<const Scalar> strided() const {
        return {view_.data, view_.batch * view_.tokens, view_.heads * head_dim_, view_.token_stride, 1};
    }

    Index local_batch() const {
        return contains(Where.rows, dp) ? sequences_.local_batch(spec_.mesh).count : sequences_.batch;
    }

    void check(const Strided<S>& local) const {
        require<ShapeError>(head_dim_ >= 1, "heads: head_dim is ", head_dim_);
        require<ShapeError>(spec_.row_partition == sequences_.rows(spec_.mesh, Where.rows), "heads: the rows of x, ",
                            shape(spec_.rows(), spec_.cols()), ", do not lie as the tokens of ", sequences_.batch, ' ',
                            to_string(sequences_.layout), " sequences of ", sequences_.length, " over ",
                            to_string(Where.rows), "; divide them by sequences.rows(mesh, ", to_string(Where.rows),
                            ')');
        for (int rank = 0; rank < spec_.col_partition.ranks(); ++rank)
            for (const Run& piece : spec_.col_partition.runs(rank).pieces())
                require<ShapeError>(piece.stride == 1 && piece.start % head_dim_ == 0 && piece.count % head_dim_ == 0,
                                    "heads: columns ", spec_.col_partition.runs(rank).to_string(), " of ", spec_.cols(),
                                    " on rank ", rank, " are not whole heads of ", head_dim_);
        require(local.cols <= 1 || local.col_stride == 1,
                "heads: the elements of a head must lie one after the other; this view has column stride ",
                local.col_stride, " (a column-major matrix, or a transposed one?)");
    }

    ShardSpec spec_;
    Sequences sequences_;
    Index head_dim_;
    HeadsView<S> view_;
};

/// The heads of a token matrix, or of a block of columns of one (`block_view(qkv, blocks, "q")`); copies nothing.
///
/// Shapes      x [sequences.tokens(), heads * head_dim], rows split over dp and cp as `sequences` says, whole heads
///             over the axes of its columns
/// Throws      ShapeError on every rank where x is not that; ArgumentError where a head is not contiguous
template <ShardedLike X>
auto heads(X&& x, const Sequences& sequences, Index head_dim) {
    const auto view = x.view();
    using View = std::remove_const_t<decltype(view)>;
    using S = std::conditional_t<std::is_const_v<typename View::Element>, const ScalarOf<X>, ScalarOf<X>>;
    return Heads<S, View::placement>(view, sequences, head_dim);
}

namespace detail {

/// The columns of a matrix with `to` columns a head, heads lying as in one with `from` columns a head.
inline Partition resized_heads(const Partition& columns, Index from, Index to) {
    std::vector<Runs> runs;
    for (int rank = 0; rank < columns.ranks(); ++rank) {
        Runs& mine = runs.emplace_back();
        for (const Run& piece : columns.runs(rank).pieces())
            mine.append({piece.start / from * to, 1, piece.count / from * to});
    }
    return Partition::of_checked_runs(columns.size() / from * to, std::move(runs), columns.overlaps());
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
