#include "errors/wrong_calls.hpp"

#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/same_bits.hpp>
#include <reigen/matmul/sums.hpp>

namespace products_test {

using namespace wrong_calls;

namespace {

constexpr auto shape_error = Refused::shape;
constexpr auto argument_error = Refused::argument;

template <Placement Where>
Sharded<double, Where> matrix(const Communicator& world, const Extent& rows, const Extent& cols, Axes axis = tp) {
    return Sharded<double, Where>::zeros(over(world, axis), rows, cols);
}

constexpr Placement by_rows = split_rows(tp);
constexpr Placement by_cols = split_cols(tp);

/// All n items on the last rank.
Partition on_the_last(const Communicator& world, Index n) {
    std::vector<Index> sizes(std::size_t(world.size()), 0);
    sizes.back() = n;
    return Partition::of_sizes(sizes);
}

/// n items of which every rank has all.
Partition on_every_rank(const Communicator& world, Index n) {
    return Partition::of_runs(n, std::vector<Runs>(std::size_t(world.size()), Runs::range(0, n)));
}

const std::vector<WrongCall> products = {
    {"k of two sizes", shape_error, "a is 4x12, b is 10x8",
     [](auto& world) { matmul(matrix<by_cols>(world, 4, 12), matrix<by_rows>(world, 10, 8)); }},
    {"k divided in two ways", shape_error, "are divided differently",
     [](auto& world) { matmul(matrix<by_cols>(world, 4, 12), matrix<by_rows>(world, on_the_last(world, 12), 8)); }, 2},
    {"two meshes", argument_error, "different meshes, tp=%P and cp=%P",
     [](auto& world) { matmul(matrix<replicated>(world, 4, 12), matrix<replicated>(world, 12, 8, cp)); }},
    {"a result of another shape", shape_error, "a b is 4x8, c is 4x9",
     [](auto& world) {
         auto c = matrix<by_cols>(world, 4, 9);
         matmul_into(1, matrix<replicated>(world, 4, 12), matrix<by_cols>(world, 12, 8), 1, c);
     }},
    {"a summed result of another shape", shape_error, "a b is 4x8, c is 3x8",
     [](auto& world) {
         auto c = matrix<replicated>(world, 3, 8);
         matmul_into(1, matrix<by_cols>(world, 4, 12), matrix<by_rows>(world, 12, 8), 1, c);
     }},
    {"a result on another mesh", argument_error, "different meshes, tp=%P and cp=%P",
     [](auto& world) {
         auto c = matrix<replicated>(world, 4, 8, cp);
         matmul_into(1, matrix<by_cols>(world, 4, 12), matrix<by_rows>(world, 12, 8), 1, c);
     }},
    {"a result divided otherwise", shape_error, "are divided differently",
     [](auto& world) {
         auto c = matrix<by_cols>(world, 4, on_the_last(world, 8));
         matmul_into(1, matrix<replicated>(world, 4, 12), matrix<by_cols>(world, 12, 8), 1, c);
     },
     2},
    {"a product into its own factor", argument_error, "lies where a factor does",
     [](auto& world) {
         auto a = matrix<replicated>(world, 4, 4);
         matmul_into(1, a, matrix<replicated>(world, 4, 4), 1, a);
     }},
    {"an input gradient of another width", shape_error, "a is 4x9, b is 8x12",
     [](auto& world) { input_gradient(matrix<by_cols>(world, 4, 9), matrix<by_cols>(world, 12, 8)); }},
    {"blocks of k of size 0", argument_error, "k_block is 0",
     [](auto& world) { matmul_same_bits(matrix<by_cols>(world, 4, 12), matrix<by_rows>(world, 12, 8), 0); }},
    {"blocks of k of negative size", argument_error, "k_block is -4",
     [](auto& world) { matmul_same_bits(matrix<by_cols>(world, 4, 12), matrix<by_rows>(world, 12, 8), -4); }},
    {"blocks of k that ranks have not whole", shape_error, "rank 0 holds 1 0 2-5 of k = 6, not whole blocks of 3",
     [](auto& world) {
         std::vector<Runs> runs(std::size_t(world.size()));
         runs[0] = {{1, 1, 1}, {0, 1, 1}, {2, 1, 4}};
         const Partition k = Partition::of_runs(6, runs);
         matmul_same_bits(matrix<by_cols>(world, 4, k), matrix<by_rows>(world, k, 8), 3);
     }},
};

const std::vector<WrongCall> sums_and_rows = {
    {"a sum of two shapes", shape_error, "add: 4x12 and 4x11",
     [](auto& world) { add(matrix<by_cols>(world, 4, 12), matrix<by_cols>(world, 4, 11)); }},
    {"a sum of rows divided in two ways", shape_error, "are divided differently",
     [](auto& world) { add(matrix<by_rows>(world, 12, 4), matrix<by_rows>(world, on_the_last(world, 12), 4)); }, 2},
    {"a sum over two meshes", argument_error, "different meshes, tp=%P and dp=%P",
     [](auto& world) { add(matrix<replicated>(world, 4, 12), matrix<replicated>(world, 4, 12, dp)); }},
    {"a bias of another width", shape_error, "x is 4x12, v is 1x11; want 1x12",
     [](auto& world) { add_bias(matrix<by_cols>(world, 4, 12), matrix<by_cols>(world, 1, 11)); }},
    {"a bias of two rows", shape_error, "x is 4x12, v is 2x12; want 1x12",
     [](auto& world) { add_bias(matrix<by_cols>(world, 4, 12), matrix<by_cols>(world, 2, 12)); }},
    {"a scale of no rows", shape_error, "x is 4x12, v is 0x12; want 1x12",
     [](auto& world) { scale_columns(matrix<by_cols>(world, 4, 12), matrix<by_cols>(world, 0, 12)); }},
    {"column sums into another width", shape_error, "x is 4x12, v is 1x10",
     [](auto& world) {
         auto v = matrix<by_cols>(world, 1, 10);
         column_sums_into(matrix<by_cols>(world, 4, 12), 0, v);
     }},
    {"a shared parameter that heads are no multiple of", shape_error, "x is 4x12, v is 1x5",
     [](auto& world) {
         auto v = matrix<replicated>(world, 1, 5);
         shared_sums_into(matrix<replicated>(world, 4, 12), 0, v);
     }},
    {"a shared parameter of no width", shape_error, "x is 4x12, v is 1x0",
     [](auto& world) {
         auto v = matrix<replicated>(world, 1, 0);
         shared_sums_into(matrix<replicated>(world, 4, 12), 0, v);
     }},
    {"a sum over columns that several ranks hold", shape_error, "hold the same items",
     [](auto& world) { row_sums(matrix<by_cols>(world, 4, on_every_rank(world, 6))); }, 2},
};

} // namespace

TEST(errors, of_products) {
    expect_refused(products);
}

TEST(errors, of_sums_and_rows) {
    expect_refused(sums_and_rows);
}

} // namespace products_test
