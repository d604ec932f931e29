#include "support/bits.hpp"
#include "support/worlds.hpp"

#include <reigen/core/random.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/same_bits.hpp>

#include <gtest/gtest.h>

namespace matmul_bits_test {

using namespace reigen;

namespace {

constexpr Index m = 37;
constexpr Index k = 301;
constexpr Index n = 53;

template <class S>
S element(int seed, Index i, Index j) {
    return S(RandomStream(std::uint64_t(seed)).uniform(i * 1000 + j) - 0.5);
}

template <class S, Placement Where>
Sharded<S, Where> random_matrix(const Mesh& mesh, const Extent& rows, const Extent& cols, int seed) {
    return Sharded<S, Where>::from_global(mesh, rows, cols, [&](Index i, Index j) { return element<S>(seed, i, j); });
}

template <class S>
RowMatrix<S> on_one_rank() {
    const Mesh alone;
    return matmul(random_matrix<S, replicated>(alone, m, k, 1), random_matrix<S, replicated>(alone, k, n, 2)).local();
}

template <class S>
RowMatrix<S> tree_sum_on_one_rank(Index k_block) {
    const Mesh alone;
    return matmul_same_bits(random_matrix<S, replicated>(alone, m, k, 1), random_matrix<S, replicated>(alone, k, n, 2),
                            k_block)
        .local();
}

} // namespace

TEST(matmul_bits, column_and_sequence_partitioned_products_do_not_depend_on_the_number_of_ranks) {
    const RowMatrix<float> want = on_one_rank<float>();
    on_every_world([&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto by_cols = matmul(random_matrix<float, replicated>(mesh, m, k, 1),
                                    random_matrix<float, split_cols(tp)>(mesh, k, n, 2));
        EXPECT_TRUE(same_bits(to_dense(by_cols), want));
        const auto by_rows = matmul(random_matrix<float, split_rows(tp)>(mesh, m, k, 1),
                                    random_matrix<float, replicated>(mesh, k, n, 2));
        EXPECT_TRUE(same_bits(to_dense(by_rows), want));
    });
}

TEST(matmul_bits, a_row_partitioned_sum_has_the_same_bits_on_every_rank_and_in_every_run) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        RowMatrix<float> first;
        for (int run = 0; run < 3; ++run) {
            const auto c = redistribute<replicated>(matmul(random_matrix<float, split_cols(tp)>(mesh, m, k, 1),
                                                           random_matrix<float, split_rows(tp)>(mesh, k, n, 2)));
            const RowMatrix<float> mine = c.local();
            if (run == 0)
                first = mine;
            EXPECT_TRUE(same_bits(mine, first));
            std::vector<float> of_rank_0(mine.data(), mine.data() + mine.size());
            world.broadcast(of_rank_0, 0);
            EXPECT_TRUE(same_bits(of_rank_0.data(), mine.data(), of_rank_0.size()));
        }
    });
}

TEST(matmul_bits, the_fixed_tree_gives_the_same_bits_for_every_number_of_ranks) {
    for (const Index k_block : {16, 50, 301}) {
        const RowMatrix<float> want = tree_sum_on_one_rank<float>(k_block);
        const RowMatrix<float> plain = on_one_rank<float>();
        for (Index e = 0; e < plain.size(); ++e)
            EXPECT_NEAR(want.data()[e], plain.data()[e], 1e-6 * double(k));
        on_every_world([&](const Communicator& world) {
            const Mesh mesh(world, {{Axes::tp, world.size()}});
            const Partition blocks = Partition::balanced(k, world.size(), k_block);
            const auto c = matmul_same_bits(random_matrix<float, split_cols(tp)>(mesh, m, blocks, 1),
                                            random_matrix<float, split_rows(tp)>(mesh, blocks, n, 2), k_block);
            static_assert(placement_of<decltype(c)> == replicated);
            EXPECT_TRUE(same_bits(RowMatrix<float>(c.local()), want)) << "k_block " << k_block;
        });
    }
}

TEST(matmul_bits, the_fixed_tree_does_not_ask_who_holds_which_block) {
    const RowMatrix<double> want = tree_sum_on_one_rank<double>(32);
    on_world(3, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const Partition dealt =
            Partition::of_runs(k, {{{64, 1, 32}, {0, 1, 32}}, {}, {{32, 1, 32}, {288, 1, 13}, {96, 1, 192}}});
        const auto c = matmul_same_bits(random_matrix<double, split_cols(tp)>(mesh, m, dealt, 1),
                                        random_matrix<double, split_rows(tp)>(mesh, dealt, n, 2), 32);
        EXPECT_TRUE(same_bits(RowMatrix<double>(c.local()), want));
    });
}

// More columns than are summed at once.
TEST(matmul_bits, the_fixed_tree_gives_each_column_the_bits_it_has_alone) {
    constexpr Index rows = 300, depth = 250, columns = 1000, some = 100, block = 50;
    ASSERT_LT(detail::same_bits::columns_at_once<float>(rows), columns / 2);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Partition blocks = Partition::balanced(depth, world.size(), block);
        const auto a = random_matrix<float, split_cols(tp)>(mesh, rows, blocks, 1);
        const auto b = random_matrix<float, split_rows(tp)>(mesh, blocks, columns, 2);
        const auto c = matmul_same_bits(a, b, block);
        const auto plain = sum(matmul(a, b));
        EXPECT_LE((c.local() - plain.local()).cwiseAbs().maxCoeff(), 1e-4F);
        for (const Index first : {Index(0), Index(330), columns - some}) {
            Sharded<float, split_rows(tp)> part(mesh, blocks, some);
            part.local() = b.local().middleCols(first, some);
            const RowMatrix<float> got = c.local().middleCols(first, some);
            EXPECT_TRUE(same_bits(got, RowMatrix<float>(matmul_same_bits(a, part, block).local())));
        }
    });
}

// L shares of the product go to every other rank, and each sends them its share of the sum.
TEST(matmul_bits, the_fixed_tree_sends_what_its_subtrees_and_the_sum_take) {
    const auto check = [](const Communicator& world, Index blocks, Index subtrees) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Partition depth = Partition::balanced(10 * blocks, world.size(), 10);
        const auto a = random_matrix<double, split_cols(tp)>(mesh, 7, depth, 1);
        const auto b = random_matrix<double, split_rows(tp)>(mesh, depth, 5, 2);
        const Traffic before = mesh[tp].traffic();
        (void)matmul_same_bits(a, b, 10);
        const Index others = world.size() - 1, share = balanced_range(35, world.size(), world.rank()).count;
        EXPECT_EQ(mesh[tp].traffic() - before,
                  (Traffic{2 * others, (subtrees * (35 - share) + others * share) * Index(sizeof(double))}));
    };
    on_every_world([&](const Communicator& world) { check(world, 2 * world.size(), 1); });
    on_world(2, [&](const Communicator& world) { check(world, 5, 2); }); // 0 1 | 2 and 3 | 4
}

TEST(matmul_bits, the_fixed_tree_refuses_broken_blocks) {
    on_world(2, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 2}});
        const auto a = random_matrix<float, split_cols(tp)>(mesh, m, k, 1);
        const auto b = random_matrix<float, split_rows(tp)>(mesh, k, n, 2);
        EXPECT_THROW(matmul_same_bits(a, b, 64), ShapeError);
        EXPECT_THROW(matmul_same_bits(a, b, 0), ArgumentError);
        const auto none = matmul_same_bits(random_matrix<float, split_cols(tp)>(mesh, 2, 0, 1),
                                           random_matrix<float, split_rows(tp)>(mesh, 0, 2, 2));
        EXPECT_EQ(none.local()(1, 1), 0);
        const Partition halves = Partition::balanced(k, 2, 64);
        const auto no_columns = matmul_same_bits(random_matrix<float, split_cols(tp)>(mesh, m, halves, 1),
                                                 random_matrix<float, split_rows(tp)>(mesh, halves, 0, 2), 64);
        EXPECT_EQ(no_columns.local().size(), 0);
    });
}

TEST(matmul_bits, row_partitioned_sums_do_depend_on_the_number_of_ranks_without_it) {
    const RowMatrix<float> one = on_one_rank<float>();
    on_world(3, [&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const auto c = redistribute<replicated>(matmul(random_matrix<float, split_cols(tp)>(mesh, m, k, 1),
                                                       random_matrix<float, split_rows(tp)>(mesh, k, n, 2)));
        EXPECT_FALSE(same_bits(RowMatrix<float>(c.local()), one));
    });
}

} // namespace matmul_bits_test
