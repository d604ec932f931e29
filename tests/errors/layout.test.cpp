#include "errors/wrong_calls.hpp"

#include <reigen/layout/block_view.hpp>
#include <reigen/layout/parameter.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/layout/sum_overlaps.hpp>

namespace layout_test {

using namespace wrong_calls;

namespace {

constexpr auto shape_error = Refused::shape;
constexpr auto argument_error = Refused::argument;

template <Placement Where>
using Matrix = Sharded<double, Where>;

/// A sharded matrix of these sizes, for nothing but its errors.
template <Placement Where>
void make(const Communicator& world, const Extent& rows, const Extent& cols) {
    Matrix<Where>(over(world, tp), rows, cols);
}

const std::vector<WrongCall> partitions = {
    {"items below 0", argument_error, "-1 items", [](auto&) { Partition::balanced(-1, 2); }},
    {"no ranks", argument_error, "over 0 ranks", [](auto&) { Partition::balanced(4, 0); }},
    {"negative ranks", argument_error, "over -2 ranks", [](auto&) { Partition::balanced(4, -2); }},
    {"a grain of 0", argument_error, "by 0", [](auto&) { Partition::balanced(4, 2, 0); }},
    {"a range in grains of 0", argument_error, "4 items by 0", [](auto&) { balanced_range(4, 2, 1, 0); }},
    {"a range of a rank beyond the last", argument_error, "rank 2 of 2", [](auto&) { balanced_range(4, 2, 2); }},
    {"a mesh's share in grains of 0", argument_error, "by 0",
     [](auto& world) { Partition::balanced(4, world.size(), 0), balanced(over(world, tp), tp, 4, 0); }},
    {"sizes of no ranks", argument_error, "no rank", [](auto&) { Partition::of_sizes(std::span<const Index>()); }},
    {"a negative size", shape_error, "with -1 items", [](auto&) { Partition::of_sizes({2, -1}); }},
    {"sizes whose sum overflows", shape_error, "4611686018427387904 and 4611686018427387904",
     [](auto&) { Partition::of_sizes({huge, huge}); }},
    {"runs that leave an item out", shape_error, "no rank holds 2 of 4",
     [](auto&) { Partition::of_runs(4, {{{0, 1, 2}}, {{3, 1, 1}, {0, 1, 1}}}); }},
    {"fewer runs than items", shape_error, "the ranks hold 2 of 4",
     [](auto&) { Partition::of_runs(4, {Runs::range(0, 2)}); }},
    {"fewer runs than items that no memory holds", shape_error, "the ranks hold 2 of 4611686018427387904",
     [](auto&) { Partition::of_runs(huge, {Runs::range(0, 2)}); }},
    {"a run beyond the end", shape_error, "rank 0 holds 4 of 4",
     [](auto&) { Partition::of_runs(4, {Runs::range(0, 5)}); }},
    {"an item twice on one rank", shape_error, "rank 0 holds 1 twice",
     [](auto&) { Partition::of_runs(4, {{{0, 1, 2}, {1, 1, 3}}}); }},
    {"the runs of a rank beyond the last", argument_error, "rank 2 of 2",
     [](auto&) { Partition::balanced(4, 2).runs(2); }},
    {"the runs of a negative rank", argument_error, "rank -1 of 2", [](auto&) { Partition::balanced(4, 2).count(-1); }},
    {"a refinement of what is divided otherwise", shape_error, "the partition is for 7 ranks, the mesh has %P",
     [](auto& world) { refine(Partition::balanced(9, 7), over(world, tp), tp, tp | dp); }},
    {"a coarsening of what is divided otherwise", shape_error, "the partition is for 7 ranks, the mesh has %P",
     [](auto& world) { coarsen(Partition::balanced(9, 7), over(world, tp), tp, Axes::none); }},
    {"a refinement that takes axes away", argument_error, "dp does not contain tp",
     [](auto& world) { refine(Partition::whole(9), over(world, cp), tp, dp); }},
};

const std::vector<WrongCall> matrices = {
    {"negative rows", argument_error, "-3 items", [](auto& world) { make<replicated>(world, -3, 2); }},
    {"a partition for other ranks", shape_error, "the partition is for 7 ranks, the mesh has %P",
     [](auto& world) { make<split_cols(tp)>(world, 3, Partition::balanced(9, 7)); }},
    {"a partition of what is not split", shape_error, "columns over none: the partition is for 2 ranks, the mesh has 1",
     [](auto& world) { make<replicated>(world, 3, Partition::balanced(9, 2)); }},
    {"sizes whose product overflows", shape_error, "4294967296 times 4294967296",
     [](auto& world) { make<replicated>(world, Index(1) << 32, Index(1) << 32); }},
    {"sizes whose product overflows though no rank's does", shape_error, "4611686018427387904 times 3",
     [](auto& world) { make<split_rows(tp)>(world, huge, 3); }},
    {"sizes whose bytes overflow", shape_error, "elements of 8 bytes are more than any memory has",
     [](auto& world) { make<replicated>(world, Index(1) << 31, Index(1) << 31); }},
    {"a specification of another placement", argument_error,
     "of type {; tp; } with the specification of one that is {tp; ; }",
     [](auto& world) { Matrix<split_cols(tp)>(ShardSpec(over(world, tp), split_rows(tp), 4, 4)); }},
    {"memory of another size", shape_error, "3 elements for a local part of 8",
     [](auto& world) { Matrix<replicated>(ShardSpec(over(world, tp), replicated, 2, 4), Buffer<double>(3)); }},
    {"a view of another size", shape_error, "local is 2x3, the partitions give this rank 4x3",
     [](auto& world) {
         RowMatrix<double> mine(2, 3);
         shard<replicated>(over(world, tp), mine, 4, 3);
     }},
    {"a view without memory", argument_error, "null data, 2x3 elements",
     [](auto& world) { ShardedView<double, replicated>(over(world, tp), 2, 3, Strided<double>{nullptr, 2, 3, 3, 1}); }},
    {"a view of what was given away", argument_error, "null data, 2x3 elements",
     [](auto& world) {
         Matrix<replicated> x(over(world, tp), 2, 3);
         const Buffer<double> gone = std::move(x).release();
         x.view(); // NOLINT(bugprone-use-after-move)
     }},
    {"a dense matrix of another size", shape_error, "the matrix is 2x3, its partitions are for 2x4",
     [](auto& world) { Matrix<replicated>::from_global(over(world, tp), 2, 4, RowMatrix<double>(2, 3)); }},
    {"a redistribution to other sizes", shape_error, "x is 4x6, the new partitions are for 4x5",
     [](auto& world) { redistribute<replicated>(Matrix<split_cols(tp)>(over(world, tp), 4, 6), 4, 5); }},
    {"a redistribution with a partition for other ranks", shape_error, "the partition is for 7 ranks, the mesh has %P",
     [](auto& world) {
         redistribute<split_rows(tp)>(Matrix<split_cols(tp)>(over(world, tp), 4, 6), Partition::balanced(4, 7), 6);
     }},
    {"a redistribution with an overlapping partition of another total", shape_error,
     "x is 4x6, the new partitions are for 4x3",
     [](auto& world) {
         const Partition copies =
             Partition::of_runs(3, std::vector<Runs>(std::size_t(world.size()), Runs::range(0, 3)));
         start_redistribute<split_cols(tp)>(Matrix<replicated>(over(world, tp), 4, 6), 4, copies);
     }},
    {"a redistribution that is waited for twice", argument_error, "wait is called once",
     [](auto& world) {
         auto pending = start_redistribute<replicated>(Matrix<replicated>(over(world, tp), 4, 6));
         pending.wait();
         pending.wait();
     }},
    {"sums of copies in a matrix of another size", shape_error, "local is 2x3, the partitions give this rank 4x3",
     [](auto& world) {
         RowMatrix<double> mine(2, 3);
         sum_overlaps(ShardSpec(over(world, tp), replicated, 4, 3), strided(mine));
     }},
    {"a parameter with another gradient", shape_error, "the value is 4x6, the gradient 4x5",
     [](auto& world) {
         Matrix<replicated> value(over(world, tp), 4, 6), gradient(over(world, tp), 4, 5);
         parameter_view("w", value, gradient);
     }},
    {"a parameter with its gradient on another mesh", argument_error, "different meshes, tp=%P and dp=%P",
     [](auto& world) {
         Matrix<replicated> value(over(world, tp), 4, 6), gradient(over(world, dp), 4, 6);
         parameter_view("w", value, gradient);
     }},
};

// prime-rl PR#2828, ring-flash-attention#35: options that nothing heeds are refused, not dropped.
const std::vector<WrongCall> sequences = {
    {"a negative batch", argument_error, "-1 sequences of 4",
     [](auto& world) { Sequences{-1, 4}.rows(over(world, cp), cp); }},
    {"a negative length", argument_error, "2 sequences of -4",
     [](auto& world) { Sequences{2, -4}.rows(over(world, cp), cp); }},
    {"negative sequences of negative length", argument_error, "-2 sequences of -4",
     [](auto& world) { Sequences{-2, -4}.rows(over(world, cp), cp); }},
    {"more tokens than can be counted", shape_error, "4611686018427387904 times 4",
     [](auto& world) { Sequences{huge, 4}.rows(over(world, cp), cp); }},
    {"stripes of 0", argument_error, "stripes of 0",
     [](auto& world) { Sequences{2, 4, SequenceLayout::striped, 0}.rows(over(world, cp), cp); }},
    {"stripes that the layout does not have", argument_error, "stripes of 3 in the zigzag layout",
     [](auto& world) { Sequences{2, 4, SequenceLayout::zigzag, 3}.rows(over(world, cp), cp); }},
    {"a layout that there is none of", argument_error, "there is no layout 9",
     [](auto& world) { Sequences{2, 4, SequenceLayout(9)}.positions(over(world, cp)); }},
    {"positions of a rank beyond the last", argument_error, "rank 2 of 2",
     [](auto&) { sequence_runs(SequenceLayout::zigzag, 8, 2, 2); }},
    {"positions of no ranks", argument_error, "rank 0 of 0",
     [](auto&) { sequence_runs(SequenceLayout::contiguous, 8, 0, 0); }},
    {"tokens over an axis that cuts none", argument_error, "token rows over ep",
     [](auto& world) { Sequences{2, 4}.rows(over(world, cp), ep); }},
};

const std::vector<WrongCall> heads_and_blocks = {
    {"query heads that do not group", shape_error, "8 query heads do not share 3 K/V heads",
     [](auto&) { HeadGroups{8, 3}.query(2, 0); }},
    {"no key heads", shape_error, "8 query heads do not share 0 K/V heads",
     [](auto&) { NamedBlocks::interleaved_heads({8, 0}, 4); }},
    {"blocks of heads that do not group", shape_error, "2 query heads do not share 4 K/V heads",
     [](auto&) { NamedBlocks::heads({2, 4}, 4); }},
    {"negative heads", shape_error, "-4 query heads do not share -2", [](auto&) { NamedBlocks::heads({-4, -2}, 4); }},
    {"heads of no columns", argument_error, "heads of 0 columns", [](auto&) { NamedBlocks::heads({4, 2}, 0); }},
    {"heads of negative columns", argument_error, "heads of -8 columns",
     [](auto&) { HeadGroups{4, 2}.query_partition(2, -8); }},
    {"values of negative columns", argument_error, "values of -1",
     [](auto&) { NamedBlocks::interleaved_heads({4, 2}, 4, -1); }},
    {"heads whose columns overflow", shape_error, "is more than an Index can count",
     [](auto&) { NamedBlocks::heads({4, 2}, huge / 2); }},
    {"heads of a rank beyond the last", argument_error, "rank 9 of 8", [](auto&) { HeadGroups{4, 2}.kv(8, 9); }},
    {"heads of no ranks", argument_error, "over 0 ranks", [](auto&) { HeadGroups{4, 2}.query_partition(0, 8); }},
    {"a block of negative size", argument_error, "gate has size -3", [](auto&) { NamedBlocks({{"gate", -3}}); }},
    {"a block in grains of 0", argument_error, "grain 0", [](auto&) { NamedBlocks({{"gate", 3, 0}}); }},
    {"two blocks of one name", argument_error, "two blocks are named \"gate\"",
     [](auto&) { NamedBlocks({{"gate", 3}, {"gate", 3}}); }},
    {"blocks whose sizes overflow", shape_error, "are more than an Index can count",
     [](auto&) { NamedBlocks({{"a", huge}, {"b", huge}}); }},
    {"a block that there is none of", argument_error, "no block \"down\"",
     [](auto&) { NamedBlocks({{"gate", 3}}).place("down", 1, 0); }},
    {"blocks over no ranks", argument_error, "over 0 ranks", [](auto&) { NamedBlocks({{"gate", 3}}).partition(0); }},
    {"blocks over negative ranks", argument_error, "over -1 ranks",
     [](auto&) { NamedBlocks({{"gate", 3}}).partition(-1); }},
    {"the place of a rank beyond the last", argument_error, "rank 2 of 2",
     [](auto&) { NamedBlocks({{"gate", 3}}).place("gate", 2, 2); }},
    {"a view of blocks that the columns are not", shape_error, "4x12, are not divided by these blocks, which have 10",
     [](auto& world) {
         const NamedBlocks blocks = {{"gate", 5}, {"up", 5}};
         block_view(Matrix<split_cols(tp)>(over(world, tp), 4, 12).view(), blocks, "gate");
     }},
};

} // namespace

TEST(errors, of_partitions) {
    expect_refused(partitions);
}

TEST(errors, of_sharded_matrices) {
    expect_refused(matrices);
}

TEST(errors, of_sequences) {
    expect_refused(sequences);
}

TEST(errors, of_heads_and_blocks) {
    expect_refused(heads_and_blocks);
}

} // namespace layout_test
