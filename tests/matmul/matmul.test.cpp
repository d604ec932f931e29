#include "matmul/dense.hpp"
#include "support/words.hpp"

#include <reigen/layout/blocks.hpp>
#include <reigen/layout/sum_overlaps.hpp>
#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace matmul_test {

using namespace dense_products;
using namespace reigen;

namespace {

constexpr Axes R = dp | cp;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class S>
void check_column_and_row(const Mesh& mesh, Index m, Index k, Index n) {
    const Dense x = integers(m, k, 1);
    const Dense w = integers(k, n, 2);
    const auto column = matmul(sharded<split_rows(R), S>(mesh, x), sharded<split_cols(tp), S>(mesh, w));
    static_assert(placement_of<decltype(column)> == (split_rows(R) | split_cols(tp)));
    expect_equal(column, times(x, w));
    const auto row =
        matmul(sharded < split_rows(R) | split_cols(tp), S > (mesh, x), sharded<split_rows(tp), S>(mesh, w));
    static_assert(placement_of<decltype(row)> == (split_rows(R) | partial(tp)));
    expect_equal(row, times(x, w));
    expect_equal(redistribute<split_rows(R)>(row), times(x, w));
    expect_equal(redistribute<split_rows(R | tp)>(row), times(x, w));
}

/// Both gradients of Y = X W, accumulated onto what is there.
template <Placement X, Placement W>
void check_gradients(const Mesh& mesh, Index m, Index k, Index n) {
    constexpr Placement y_placement = summed(product(X, W));
    const Dense x = integers(m, k, 1);
    const Dense w = integers(k, n, 2);
    const Dense dy = integers(m, n, 3);
    const auto sx = sharded<X, double>(mesh, x);
    const auto sw = sharded<W, double>(mesh, w);
    const auto sdy = sharded<y_placement, double>(mesh, dy);
    expect_equal(matmul(sdy, transpose(sw)), times(dy, transposed(w)));
    expect_equal(input_gradient(sdy, sw), times(dy, transposed(w)));
    auto dw = sharded<product(transpose(X), y_placement), double>(mesh, integers(k, n, 4));
    matmul_into(1, transpose(sx), sdy, 1, dw);
    Dense want = times(transposed(x), dy);
    for (std::size_t e = 0; e < want.elements.size(); ++e)
        want.elements[e] += integers(k, n, 4).elements[e];
    expect_equal(dw, want);
}

} // namespace

TEST(matmul, column_and_row_partitioned_products_over_tp) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        check_column_and_row<double>(mesh, 4, 12, 8);
        check_column_and_row<float>(mesh, 3, 7, 5);
        check_column_and_row<double>(mesh, 5, 2, 1);
        check_column_and_row<double>(mesh, 0, 3, 2);
        check_column_and_row<double>(mesh, 2, 0, 2);
    });
}

TEST(matmul, column_and_row_partitioned_products_over_two_axes) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) { check_column_and_row<double>(mesh, 5, 6, 7); });
    on_mesh({{Axes::tp, 2}, {Axes::cp, 2}}, [](const Mesh& mesh) { check_column_and_row<double>(mesh, 3, 7, 5); });
}

TEST(matmul, gradients_of_column_and_row_partitioned_products) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        check_gradients<split_rows(R), split_cols(tp)>(mesh, 4, 5, 7);
        check_gradients<split_rows(R) | split_cols(tp), split_rows(tp)>(mesh, 4, 5, 7);
    });
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        check_gradients<split_rows(R), split_cols(tp)>(mesh, 3, 5, 7);
        check_gradients<split_rows(R) | split_cols(tp), split_rows(tp)>(mesh, 3, 5, 7);
    });
}

TEST(matmul, the_smallest_example) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Dense x(1, 2);
        x.elements = {2, 3};
        Dense w(2, 4);
        w.elements = {1, 0, 1, 2, 0, 1, 3, 4};
        Dense want(1, 4);
        want.elements = {2, 3, 11, 16};
        expect_equal(matmul(sharded<replicated, double>(mesh, x), sharded<split_cols(tp), double>(mesh, w)), want);
        expect_equal(redistribute<replicated>(
                         matmul(sharded<split_cols(tp), double>(mesh, x), sharded<split_rows(tp), double>(mesh, w))),
                     want);
    });
}

// text-generation-inference#1036: the bias was added on every rank before the sum.
TEST(matmul, a_bias_counts_once_for_every_number_of_ranks) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Dense x(1, 4);
        x.elements = {1, 2, 3, 4};
        Dense w(4, 2);
        w.elements.assign(8, 1);
        Dense b(1, 2);
        b.elements = {100, 200};
        Dense want(1, 2);
        want.elements = {110, 210};
        const auto sum = redistribute<replicated>(
            matmul(sharded<split_cols(tp), double>(mesh, x), sharded<split_rows(tp), double>(mesh, w)));
        expect_equal(add_bias(sum, sharded<replicated, double>(mesh, b)), want);
    });
}

// COSMA#20, DLA-Future#1022: beta applied once per rank where k is split.
TEST(matmul, beta_applies_once_where_k_is_split) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Dense a(1, 2);
        a.elements = {1, 2};
        Dense b(2, 1);
        b.elements = {3, 4};
        const auto sa = sharded<split_cols(tp), double>(mesh, a);
        const auto sb = sharded<split_rows(tp), double>(mesh, b);
        Dense result(1, 1);
        const auto check = [&](double alpha, double beta, double before, double want) {
            result.elements = {before};
            auto c = sharded<replicated, double>(mesh, result);
            matmul_into(alpha, sa, sb, beta, c);
            auto summand = sharded<partial(tp), double>(mesh, result);
            matmul_into(alpha, sa, sb, beta, summand);
            result.elements = {want};
            expect_equal(c, result);
            if (!std::isnan(before)) {
                expect_equal(summand, result);
            }
        };
        check(1, 1, 5, 16);
        check(2, -1, 5, 17);
        check(1, 0, not_a_number, 11);
    });
}

TEST(matmul, what_is_not_needed_is_not_read) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto scalar = [&](double value) {
            auto c = Sharded<double, replicated>(mesh, 1, 1);
            c.local()(0, 0) = value;
            return c;
        };
        const auto no_columns = sharded<split_cols(tp), double>(mesh, Dense(1, 0));
        const auto no_rows = sharded<split_rows(tp), double>(mesh, Dense(0, 1));
        auto c = scalar(5);
        matmul_into(1, no_columns, no_rows, 2, c);
        EXPECT_EQ(c.local()(0, 0), 10);
        Dense not_numbers(1, 2);
        not_numbers.elements = {not_a_number, not_a_number};
        auto d = scalar(5);
        matmul_into(0, sharded<split_cols(tp), double>(mesh, not_numbers),
                    sharded<split_rows(tp), double>(mesh, transposed(not_numbers)), 1, d);
        EXPECT_EQ(d.local()(0, 0), 5);
    });
}

TEST(matmul, accumulates_into_a_sum_that_is_split_further) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Dense a = integers(5, 6, 1);
        const Dense b = integers(6, 4, 2);
        Dense want = times(a, b);
        for (Index i = 0; i < 5; ++i)
            for (Index j = 0; j < 4; ++j)
                want(i, j) = 2 * want(i, j) - integers(5, 4, 3)(i, j);
        auto c = sharded<split_rows(tp), double>(mesh, integers(5, 4, 3));
        matmul_into(2, sharded<split_cols(tp), double>(mesh, a), sharded<split_rows(tp), double>(mesh, b), -1, c);
        expect_equal(c, want);
    });
}

// pytorch#103306: k = 2 over three ranks, n = 1 over four: a rank with nothing takes part.
TEST(matmul, ranks_without_a_share_take_part) {
    on_world(3, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const Dense a = integers(3, 2, 1);
        const Dense b = integers(2, 4, 2);
        expect_equal(redistribute<replicated>(
                         matmul(sharded<split_cols(tp), double>(mesh, a), sharded<split_rows(tp), double>(mesh, b))),
                     times(a, b));
    });
    on_world(4, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 4}});
        const Dense a = integers(3, 2, 1);
        const Dense b = integers(2, 1, 2);
        expect_equal(redistribute<replicated>(
                         matmul(sharded<replicated, double>(mesh, a), sharded<split_cols(tp), double>(mesh, b))),
                     times(a, b));
    });
}

TEST(matmul, takes_the_users_own_matrices_in_either_storage_order) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Dense x = integers(4, 6, 1);
        const Dense w = integers(6, 5, 2);
        Eigen::MatrixXd x_columns(4, 6);
        for (Index i = 0; i < 4; ++i)
            for (Index j = 0; j < 6; ++j)
                x_columns(i, j) = x(i, j);
        const ShardSpec spec(mesh, split_cols(tp), 6, 5);
        Eigen::MatrixXd big = Eigen::MatrixXd::Constant(9, 9, -9);
        auto w_part = big.block(2, 1, 6, spec.local_cols());
        for (Index i = 0; i < 6; ++i)
            for (Index j = 0; j < w_part.cols(); ++j)
                w_part(i, j) = w(i, spec.col_runs()[j]);
        const auto wrapped = shard<split_cols(tp)>(mesh, w_part, 6, 5);
        expect_equal(matmul(shard<replicated>(mesh, x_columns), wrapped), times(x, w));

        Eigen::MatrixXd result = Eigen::MatrixXd::Constant(5, 7, -9);
        auto y = result.block(1, 2, 4, spec.local_cols());
        matmul_into(1, shard<replicated>(mesh, x_columns), wrapped, 0, shard<split_cols(tp)>(mesh, y, 4, 5));
        for (Index i = 0; i < 4; ++i)
            for (Index j = 0; j < y.cols(); ++j)
                EXPECT_EQ(y(i, j), times(x, w)(i, spec.col_runs()[j]));
        EXPECT_EQ(result(0, 2), -9);
        EXPECT_EQ(result(1, 1), -9);
    });
}

TEST(matmul, shapes_that_do_not_fit_throw_on_every_rank) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Sharded<double, split_cols(tp)> a(mesh, 4, 12);
        const Sharded<double, split_rows(tp)> b(mesh, 10, 8);
        EXPECT_EQ(words_of<ShapeError>([&] { matmul(a, b); }), "matmul: a is 4x12, b is 10x8");
        Sharded<double, partial(tp)> c(mesh, 4, 9);
        const Sharded<double, split_rows(tp)> fits(mesh, 12, 8);
        EXPECT_EQ(words_of<ShapeError>([&] { matmul_into(1, a, fits, 1, c); }), "matmul_into: a b is 4x8, c is 4x9");
        if (world.size() == 2) {
            const Sharded<double, split_rows(tp)> other(mesh, Partition::of_sizes({5, 7}), 8);
            EXPECT_EQ(words_of<ShapeError>([&] { matmul(a, other); }),
                      "matmul: a's columns and b's rows are divided differently, rank 0 holds 0-5 and 0-4; "
                      "redistribute one of them with the other's partition");
        }
        const Mesh another(world, {{Axes::dp, world.size()}});
        if (world.size() > 1) {
            EXPECT_THROW(matmul(a, Sharded<double, split_rows(tp)>(another, 12, 8)), Error);
        }
    });
}

// With more ranks than K/V heads several ranks hold the same columns, each with its own gradient.
TEST(matmul, gradients_by_columns_that_ranks_share) {
    on_world(4, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 4}});
        const Partition cols = NamedBlocks::heads({4, 2}, 1).partition(4);
        const Dense x = integers(3, 5, 1);
        const Dense w = integers(5, cols.size(), 2);
        const auto sx = sharded<replicated, double>(mesh, x);
        const auto sw = sharded<split_cols(tp), double>(mesh, w, 5, cols);
        expect_equal(matmul(sx, sw), times(x, w));

        // Every holder's own gradient is a quarter or a half of an item's, so that their sum is `dy`.
        const Dense dy = integers(3, cols.size(), 3);
        Sharded<double, split_cols(tp)> own(mesh, 3, cols);
        for (Index i = 0; i < 3; ++i)
            for (Index j = 0; j < own.local().cols(); ++j) {
                const Index item = own.col_runs()[j];
                int first = 0;
                while (!cols.runs(first).find(item))
                    ++first;
                const bool shared = cols.runs(3 - 2 * (first / 2 == 0)).find(item) && item >= 4;
                own.local()(i, j) = !shared ? dy(i, item) : first == world.rank() ? dy(i, item) - 2 : 2;
            }
        expect_equal(input_gradient(own, sw), times(dy, transposed(w)));
        EXPECT_THROW(matmul(own, transpose(sw)), ShapeError);
        Sharded<double, split_cols(tp)> dw(mesh, 5, cols);
        matmul_into(1, transpose(sx), own, 0, dw);
        sum_overlaps(dw);
        expect_equal(dw, times(transposed(x), dy));
    });
}

// TransformerEngine#1761: 16-bit partial sums.
TEST(matmul, bfloat16_sums_are_rounded_once) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Dense x(1, 4);
        x.elements = {256, 1, 1, 1};
        Dense w(4, 1);
        w.elements = {1, 1, 1, 1};
        const auto summand =
            matmul(sharded<split_cols(tp), bfloat16>(mesh, x), sharded<split_rows(tp), bfloat16>(mesh, w));
        static_assert(std::is_same_v<decltype(summand)::Element, float>);
        EXPECT_EQ(float(redistribute<replicated>(summand).local()(0, 0)), 260.0F);
        Sharded<bfloat16, replicated> c(mesh, 1, 1);
        c.local()(0, 0) = bfloat16(1.0F);
        matmul_into(1, sharded<split_cols(tp), bfloat16>(mesh, x), sharded<split_rows(tp), bfloat16>(mesh, w), 1, c);
        EXPECT_EQ(float(c.local()(0, 0)), 260.0F);
    });
}

} // namespace matmul_test
