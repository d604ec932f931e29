#include "comm/values.hpp"
#include "layout/values.hpp"
#include "matmul/dense.hpp"

#include <reigen/comm/matrix.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/sums.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace products_test {

using namespace dense_products;
using namespace reigen;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// alpha A B + beta C with k over `K`; what a factor of zero multiplies is NaN on every rank.
template <Axes K, Placement C>
void expect_beta_once(const Mesh& mesh, Index m, Index k, Index n, double alpha, double beta) {
    SCOPED_TRACE(concat(C, ", k ", k, ", alpha ", alpha, ", beta ", beta));
    const Dense a = integers(m, k, 1), b = integers(k, n, 2), before = integers(m, n, 3);
    auto sharded_a = sharded<split_cols(K), double>(mesh, a);
    auto sharded_c = sharded<C, double>(mesh, before);
    if (alpha == 0)
        sharded_a.local().setConstant(not_a_number);
    if (beta == 0)
        sharded_c.local().setConstant(not_a_number);
    matmul_into(alpha, sharded_a, sharded<split_rows(K), double>(mesh, b), beta, sharded_c);
    Dense want = times(a, b);
    for (std::size_t i = 0; i < want.elements.size(); ++i)
        want.elements[i] = alpha * want.elements[i] + beta * before.elements[i];
    expect_equal(sharded_c, want);
}

template <Axes K>
void expect_beta_once(const Mesh& mesh) {
    for (const Index k : {5, 2, 1, 0}) // uneven, then with ranks that have none of it
        for (const auto& [alpha, beta] :
             {std::pair{1.0, 1.0}, {2.0, -3.0}, {1.0, 0.0}, {0.0, 1.0}, {0.0, 2.0}, {0.0, 0.0}}) {
            expect_beta_once<K, replicated>(mesh, 3, k, 4, alpha, beta);
            expect_beta_once<K, split_rows(K)>(mesh, 3, k, 4, alpha, beta);
            expect_beta_once<K, split_cols(K)>(mesh, 3, k, 4, alpha, beta);
            expect_beta_once<K, partial(K)>(mesh, 3, k, 4, alpha, beta);
        }
}

/// Column-major rows of a matrix of -9: what is gathered or scattered there, and that nothing beside it changes.
template <class Whole, class Call>
void expect_written_in_a_block(Index rows, Index cols, const Eigen::MatrixXd& want, Call call) {
    Whole whole = Whole::Constant(rows + 3, cols + 2, -9);
    call(whole.block(1, 1, rows, cols));
    Whole expected = Whole::Constant(rows + 3, cols + 2, -9);
    expected.block(1, 1, rows, cols) = want;
    EXPECT_EQ(whole, expected);
}

Eigen::MatrixXd numbered(Index rows, Index cols, int rank) {
    return Eigen::MatrixXd::NullaryExpr(rows, cols, [=](Index i, Index j) { return double(100 * rank + 10 * i + j); });
}

template <class Whole>
void expect_strided_collectives(const Communicator& world) {
    const auto parts = uneven_parts(world.size()); // rank 1 has none
    const Index n = total(parts), first = first_of(parts, world.rank()), mine = parts[std::size_t(world.rank())];
    const Eigen::MatrixXd all = numbered(n, 3, 0);
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(n, 3);
    for (int r = 0; r < world.size(); ++r)
        sum += numbered(n, 3, r);
    const Whole given = numbered(n, 3, world.rank());
    expect_written_in_a_block<Whole>(
        n, 3, all, [&](auto block) { all_gather_rows(world, all.middleRows(first, mine), block, parts); });
    expect_written_in_a_block<Whole>(3, n, all.transpose(), [&](auto block) {
        all_gather_cols(world, all.middleRows(first, mine).transpose(), block, parts);
    });
    expect_written_in_a_block<Whole>(mine, 3, sum.middleRows(first, mine), [&](auto block) {
        reduce_scatter_rows(world, given, block, Reduction::sum, parts);
    });
    expect_written_in_a_block<Whole>(3, mine, sum.middleRows(first, mine).transpose(), [&](auto block) {
        reduce_scatter_cols(world, given.transpose(), block, Reduction::sum, parts);
    });
    expect_written_in_a_block<Whole>(n, 3, numbered(n, 3, world.size() - 1), [&](auto block) {
        block = given;
        broadcast(world, block, world.size() - 1);
    });
}

/// What changes in the result leaves x as it was, and what changes in x leaves the result.
template <ShardedLike X, class Call>
void expect_memory_of_its_own(X x, Call call) {
    const X before = x.clone();
    auto y = call(std::as_const(x));
    const RowMatrix<typename decltype(y)::Element> result = y.local();
    y.local().setConstant(-9);
    EXPECT_EQ(x.local(), before.local());
    y.local() = result;
    x.local().setConstant(-9);
    EXPECT_EQ(y.local(), result);
}

/// This thread's scratch memory after products of all kinds of sizes, of numbers and of none.
void remember_other_sizes() {
    for (const Index size : {130, 7, 65, 1}) {
        const RowMatrix<double> nan = RowMatrix<double>::Constant(size, size, not_a_number);
        RowMatrix<double> c(size, size);
        gemm(1, strided(nan), strided(nan), 0, strided(c));
    }
}

RowMatrix<double> product(Index m, Index k, Index n) {
    const Dense a = integers(m, k, 1), b = integers(k, n, 2);
    RowMatrix<double> c(m, n);
    gemm(1, Strided<const double>{a.elements.data(), m, k, k, 1}, Strided<const double>{b.elements.data(), k, n, n, 1},
         0, strided(c));
    return c;
}

} // namespace

// COSMA#20, DLA-Future#1022: beta applied on every rank of a split k, or C read where beta is 0.
TEST(faults, cosma_20_beta_counts_once_however_k_is_split_and_wherever_c_lies) {
    on_every_world([](const Communicator& world) { expect_beta_once<tp>(Mesh(world, {{Axes::tp, world.size()}})); });
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        expect_beta_once<dp | tp>(mesh);
        expect_beta_once<tp>(mesh);
    });
}

// Megatron#5337, pytorch#130251: what is not contiguous is written where it lies.
TEST(faults, megatron_5337_strided_blocks_are_gathered_scattered_and_broadcast_in_place) {
    on_every_world([](const Communicator& world) {
        expect_strided_collectives<Eigen::MatrixXd>(world);
        expect_strided_collectives<RowMatrix<double>>(world);
    });
}

// Megatron#6656: y = gather(x) at one rank was x.
TEST(faults, megatron_6656_results_share_no_memory_with_what_they_are_made_of) {
    const auto check = [](const Mesh& mesh) {
        const auto x = [&] { return filled<replicated>(mesh, 3, 4); };
        const auto rows = [&] { return filled<split_rows(tp)>(mesh, 3, 4); };
        const auto summand = [&] { return filled<partial(tp)>(mesh, 3, 4); };
        expect_memory_of_its_own(x(), [](auto& a) { return redistribute<replicated>(a); });
        expect_memory_of_its_own(x(), [](auto& a) { return redistribute<split_rows(tp)>(a); });
        expect_memory_of_its_own(x(), [](auto& a) { return redistribute<partial(tp)>(a); });
        expect_memory_of_its_own(x(), [](auto& a) { return redistribute<replicated>(transpose(a)); });
        expect_memory_of_its_own(x(), [](auto& a) { return start_redistribute<split_cols(tp)>(a).wait(); });
        expect_memory_of_its_own(rows(), [](auto& a) { return redistribute<replicated>(a); });
        expect_memory_of_its_own(rows(), [](auto& a) { return start_redistribute<replicated>(a).wait(); });
        expect_memory_of_its_own(rows(), [](auto& a) { return redistribute<split_rows(tp)>(a.view()); });
        expect_memory_of_its_own(summand(), [](auto& a) { return sum(a); });
        expect_memory_of_its_own(summand(), [](auto& a) { return redistribute<split_cols(tp)>(a); });
        expect_memory_of_its_own(summand(), [](auto& a) { return start_redistribute<replicated>(a).wait(); });
        expect_memory_of_its_own(rows(), [](auto& a) { return scale(1, a); });
        expect_memory_of_its_own(rows(), [](auto& a) { return add(a, a); });
        const auto ones = Sharded<double, replicated>::from_global(mesh, 1, 4, [](Index, Index) { return 1; });
        expect_memory_of_its_own(rows(), [&](auto& a) { return add_bias(a, ones); });
        expect_memory_of_its_own(rows(), [&](auto& a) { return scale_columns(a, ones); });
        auto dense = x();
        RowMatrix<double> copy = to_dense(dense);
        copy.setConstant(-9);
        expect_values(dense);
    };
    on_every_world([&](const Communicator& world) { check(Mesh(world, {{Axes::tp, world.size()}})); });
    check(Mesh());
}

// pytorch#163193, pytorch#159856: a function of a partial sum is not the sum of the functions.
TEST(faults, pytorch_163193_functions_come_after_the_sum_on_any_number_of_ranks) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Sharded<double, partial(tp)> x(mesh, 1, 2);
        x.local() << (world.rank() == 0 ? 1 : 0), (world.rank() == 0 ? 3 : 0);
        if (world.rank() == world.size() - 1)
            x.local() += Eigen::RowVector2d(2, 1);
        const auto whole = sum(x);
        EXPECT_EQ(std::hypot(whole.local()(0, 0), whole.local()(0, 1)), 5);
        EXPECT_EQ(row_maxima(whole).local()(0, 0), 4);
        const auto ten = Sharded<double, replicated>::from_global(mesh, 1, 2, [](Index, Index) { return 10; });
        EXPECT_EQ(add_bias(whole, ten).local()(0, 1), 14);
    });
}

// DeepSpeed#8316: sizes of one call remembered by the next.
TEST(faults, deepspeed_8316_a_product_does_not_remember_the_sizes_before_it) {
    on_every_world([](const Communicator&) {
        for (const auto& sizes : {std::array<Index, 3>{5, 70, 9}, {40, 3, 33}, {1, 1, 1}, {2, 0, 2}}) {
            const auto make = [&] { return product(sizes[0], sizes[1], sizes[2]); };
            RowMatrix<double> fresh;
            std::thread([&] { fresh = make(); }).join();
            remember_other_sizes();
            EXPECT_EQ(make(), fresh);
        }
    });
}

// DeepSpeed#5808: an all-to-all of heads and tokens that was wrong for several sequences, or as many heads as tokens.
TEST(faults, deepspeed_5808_heads_and_tokens_change_places_and_come_back) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::cp, world.size()}});
        constexpr Index head_dim = 2;
        for (const auto& [batch, length, heads] : {std::array<Index, 3>{2, 4, 4}, {1, 4, 4}, {3, 5, 2}, {2, 3, 7}})
            for (const auto layout : {SequenceLayout::contiguous, SequenceLayout::zigzag, SequenceLayout::striped}) {
                const Sequences s = {batch, length, layout};
                const Index width = heads * head_dim;
                const auto tokens = filled<split_rows(cp)>(mesh, s.rows(mesh, cp), width);
                const auto by_heads = redistribute<split_cols(cp)>(tokens, s.tokens(),
                                                                   Partition::balanced(width, world.size(), head_dim));
                EXPECT_EQ(by_heads.local().rows(), s.tokens());
                EXPECT_EQ(by_heads.local().cols() % head_dim, 0);
                expect_values(by_heads);
                const auto back = redistribute<split_rows(cp)>(by_heads, s.rows(mesh, cp), width);
                EXPECT_EQ(back.local(), tokens.local());
            }
    });
}

} // namespace products_test
