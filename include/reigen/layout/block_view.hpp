#pragma once

#include <reigen/layout/blocks.hpp>
#include <reigen/layout/sharded.hpp>

#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The columns of one named block as a matrix of its own: "gate" of gate|up, "q" of q|k|v. Looks at x's memory.
///
/// Shapes      x [m, blocks.size()], its columns divided by `blocks`; the view [m, size of the block], columns counted
///             from the block's start
/// Throws      ShapeError on every rank where x's columns are not divided by `blocks`
template <ShardedLike X>
auto block_view(X&& x, const NamedBlocks& blocks, const std::string& name) {
    auto view = x.view();
    using View = decltype(view);
    using S = std::conditional_t<std::is_const_v<typename View::Element>, const ScalarOf<X>, ScalarOf<X>>;
    const int ranks = view.col_partition().ranks();
    require<ShapeError>(view.col_partition() == blocks.partition(ranks), "block_view: the columns of x, ",
                        shape(view.rows(), view.cols()), ", are not divided by these blocks, which have ",
                        blocks.size());
    const BlockPlace place = blocks.place(name, ranks, view.mesh().rank(View::placement.cols));
    const auto local = view.strided();
    return ShardedView<S, View::placement>(view.mesh(), view.row_partition(), blocks.partition(name, ranks),
                                           local.block(0, place.first, local.rows, place.count));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
