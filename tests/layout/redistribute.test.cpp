#include "layout/values.hpp"
#include "support/bits.hpp"

#include <reigen/layout/redistribute.hpp>
#include <reigen/layout/sequences.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <thread>

namespace redistribute_test {

using namespace reigen;

namespace {

template <Placement... All>
struct PlacementList {};

/// Every pair of the list, each with partitions left to the library and with scrambled ones.
template <class S, Placement From, Placement To>
void check_pair(const Mesh& mesh, Index rows, Index cols) {
    SCOPED_TRACE(concat(From, " -> ", To, ", ", shape(rows, cols)));
    const auto x = filled<From, S>(mesh, rows, cols);
    expect_values(redistribute<To>(x));
    expect_values(redistribute<To>(x, rows, cols));
    const auto mixed = filled<From, S>(mesh, scrambled(mesh, From.rows, rows), scrambled(mesh, From.cols, cols));
    expect_values(redistribute<To>(mixed));
    auto there = redistribute<To>(mixed, scrambled(mesh, To.rows, rows), scrambled(mesh, To.cols, cols));
    expect_values(there);
    expect_values(start_redistribute<From>(std::move(there), rows, cols).wait());
}

template <class S, Placement From, Placement... To>
void check_from(const Mesh& mesh, Index rows, Index cols, PlacementList<To...>) {
    (check_pair<S, From, To>(mesh, rows, cols), ...);
}

template <class S, Placement... All>
void check_all(const Mesh& mesh, Index rows, Index cols, PlacementList<All...> list) {
    (check_from<S, All>(mesh, rows, cols, list), ...);
}

constexpr PlacementList<replicated, split_rows(tp), split_cols(tp), partial(tp)> over_tp;

constexpr PlacementList<replicated, split_rows(dp), split_rows(dp | tp), split_cols(dp | tp),
                        split_rows(dp) | split_cols(tp), split_rows(tp) | split_cols(dp), split_rows(dp) | partial(tp),
                        split_cols(tp) | partial(dp), partial(dp | tp)>
    over_both;

} // namespace

TEST(redistribute, every_pair_over_one_axis) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        check_all<double>(mesh, 5, 10, over_tp);
        check_all<float>(mesh, 2, 1, over_tp);
        check_all<double>(mesh, 0, 3, over_tp);
    });
}

TEST(redistribute, every_pair_over_two_axes) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) { check_all<double>(mesh, 7, 6, over_both); });
    on_mesh({{Axes::tp, 3}, {Axes::dp, 2}}, [](const Mesh& mesh) { check_all<double>(mesh, 5, 8, over_both); });
    on_mesh({{Axes::dp, 1}, {Axes::tp, 3}}, [](const Mesh& mesh) { check_all<double>(mesh, 3, 4, over_both); });
}

// pytorch#153595, AiDotNet.Tensors#266: gathered along the wrong axis, or in the wrong order.
TEST(redistribute, gathers_along_the_axis_that_was_split) {
    const auto element = [](Index i, Index j) { return double(10 * i + j); };
    const auto check = [&](const Mesh& mesh, Index rows, Index cols) {
        const auto by_cols = to_dense(Sharded<double, split_cols(tp)>::from_global(mesh, rows, cols, element));
        const auto by_rows = to_dense(Sharded<double, split_rows(tp)>::from_global(mesh, rows, cols, element));
        const ShardSpec spec(mesh, split_cols(tp), rows, cols);
        Eigen::MatrixXd part(rows, spec.local_cols());
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < part.cols(); ++j)
                part(i, j) = element(i, spec.col_runs()[j]);
        const auto from_column_major = to_dense(shard<split_cols(tp)>(mesh, part, rows, cols));
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < cols; ++j) {
                EXPECT_EQ(by_cols(i, j), element(i, j));
                EXPECT_EQ(by_rows(i, j), element(i, j));
                EXPECT_EQ(from_column_major(i, j), element(i, j));
            }
    };
    on_every_world([&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        check(mesh, 2, 4);
        check(mesh, 3, 5);
    });
}

// pytorch#103306: shards of unequal size, or none at all.
TEST(redistribute, uneven_and_empty_shards_come_back) {
    on_world(4, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 4}});
        const auto x = filled<split_rows(tp)>(mesh, 5, 10);
        EXPECT_EQ(x.row_partition().counts(), (std::vector<Index>{2, 1, 1, 1}));
        expect_values(redistribute<split_rows(tp)>(redistribute<replicated>(x)));
        expect_values(redistribute<replicated>(filled<split_rows(tp)>(mesh, 1, 3)));
        const auto widths = filled<split_cols(tp)>(mesh, 2, Partition::of_sizes({2, 3, 4, 5}));
        expect_values(redistribute<replicated>(widths));
        expect_values(redistribute<split_rows(tp)>(widths));
    });
}

// pytorch PR#194457: rows over both axes of a 2x2 mesh.
TEST(redistribute, nested_rows_lie_one_after_the_other) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        const auto x = redistribute<split_rows(dp | tp)>(filled<split_rows(dp)>(mesh, 6, 3));
        EXPECT_EQ(x.row_partition().counts(), (std::vector<Index>{2, 1, 2, 1}));
        expect_values(x);
        expect_values(redistribute<replicated>(x));
    });
}

// pytorch#163193, pytorch#159856: functions of a partial sum must wait for the sum.
TEST(redistribute, functions_are_taken_of_the_sum) {
    on_world(2, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 2}});
        Sharded<double, partial(tp)> x(mesh, 1, 1);
        x.local()(0, 0) = world.rank() == 0 ? 10 : 35;
        EXPECT_EQ(redistribute<replicated>(x).local()(0, 0) + 10, 55);
        Sharded<double, partial(tp)> pair(mesh, 1, 2);
        pair.local() << (world.rank() == 0 ? 1 : 2), (world.rank() == 0 ? 3 : 1);
        const auto sum = redistribute<replicated>(pair);
        EXPECT_EQ(std::hypot(sum.local()(0, 0), sum.local()(0, 1)), 5);
    });
}

// pytorch#130251, Megatron#5337: buffers that are not contiguous.
TEST(redistribute, sums_rows_of_a_column_major_matrix_and_its_transpose) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const double want = world.size() * (world.size() + 1) / 2;
        Eigen::MatrixXd m = Eigen::MatrixXd::Constant(4, 4, -9);
        auto rows = m.middleRows(1, 2);
        rows.setConstant(world.rank() + 1);
        rows = redistribute<replicated>(shard<partial(tp)>(mesh, rows)).local();
        for (Index i = 0; i < 4; ++i)
            for (Index j = 0; j < 4; ++j)
                EXPECT_EQ(m(i, j), i == 1 || i == 2 ? want : -9);

        Eigen::MatrixXd t = Eigen::MatrixXd::Constant(4, 3, world.rank() + 1);
        t(3, 0) *= 10;
        const auto turned = shard<partial(tp)>(mesh, t);
        const auto sum = redistribute<replicated>(transpose(turned));
        EXPECT_EQ(sum.local()(0, 3), 10 * want);
        EXPECT_EQ(sum.local()(2, 0), want);
    });
}

// Megatron#6656: one rank's gather handed out its input.
TEST(redistribute, the_result_has_memory_of_its_own) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const auto x = filled<split_rows(tp)>(mesh, 5, 2);
        auto y = redistribute<replicated>(x);
        y.local().setZero();
        auto z = redistribute<split_rows(tp)>(x);
        z.local().setZero();
        expect_values(x);
        auto view_result = redistribute<split_rows(tp)>(x.view());
        view_result.local().setZero();
        expect_values(x);
    });
}

TEST(redistribute, an_all_reduce_of_what_is_given_away_stays_in_place) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        auto x = filled<partial(tp)>(mesh, 3, 4);
        const double* const memory = x.data();
        const auto y = redistribute<replicated>(std::move(x));
        EXPECT_EQ(y.data(), memory);
        expect_values(y);
    });
}

TEST(redistribute, rows_are_gathered_straight_into_the_result) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::cp, 1}, {Axes::tp, world.size()}});
        const Sequences s = {3, 7};
        const auto x = filled<split_rows(cp | tp)>(mesh, s.rows(mesh, cp | tp), 4);
        const Index before = memory_account()->total().current;
        memory_account()->reset_peaks();
        const auto y = redistribute<split_rows(cp)>(x, s.rows(mesh, cp), 4);
        EXPECT_EQ(memory_account()->of(MemoryUse::messages).peak, 0);
        EXPECT_EQ(memory_account()->of(MemoryUse::activations).peak, before + 21 * 4 * Index(sizeof(double)));
        expect_values(y);
        auto sum = filled < split_rows(cp) | partial(tp) > (mesh, s.rows(mesh, cp), 4);
        const Index held = memory_account()->of(MemoryUse::activations).current;
        memory_account()->reset_peaks();
        const auto part = redistribute<split_rows(cp | tp)>(std::move(sum), s.rows(mesh, cp | tp), 4);
        EXPECT_LE(memory_account()->of(MemoryUse::activations).peak,
                  held + part.local().size() * Index(sizeof(double)));
        expect_values(part);
    });
}

TEST(redistribute, gathering_and_slicing_undo_each_other_in_every_layout) {
    on_mesh({{Axes::cp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        for (const auto layout : {SequenceLayout::contiguous, SequenceLayout::zigzag, SequenceLayout::striped}) {
            const Partition rows = Sequences{2, 7, layout}.rows(mesh, cp);
            const auto x = filled<split_rows(cp)>(mesh, rows, 3);
            const auto fine = redistribute<split_rows(cp | tp)>(x);
            EXPECT_EQ(fine.row_partition(), refine(rows, mesh, cp, cp | tp));
            const auto back = redistribute<split_rows(cp)>(fine);
            EXPECT_EQ(back.row_partition(), rows);
            expect_values(back);
        }
    });
}

TEST(redistribute, a_change_of_layout_is_one_too) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::cp, world.size()}});
        const Sequences zigzag = {2, 9, SequenceLayout::zigzag};
        const Sequences striped = {2, 9, SequenceLayout::striped};
        const auto x = filled<split_rows(cp)>(mesh, zigzag.rows(mesh, cp), 3);
        expect_values(redistribute<split_rows(cp)>(x, striped.rows(mesh, cp), 3));
        EXPECT_THROW(redistribute<split_rows(cp)>(x, 19, 3), ShapeError);
    });
}

// TransformerEngine#1761: bfloat16 sums rounded at every step.
TEST(redistribute, a_partial_of_bfloat16_is_rounded_once_after_the_sum) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        Sharded<bfloat16, partial(tp)> x(mesh, 1, 1);
        x.local()(0, 0) = world.rank() == 0 ? 256.0F : 1.0F;
        const auto sum = redistribute<replicated>(x);
        static_assert(std::is_same_v<decltype(sum)::Element, bfloat16>);
        const float want = float(bfloat16(256.0F + float(world.size() - 1)));
        EXPECT_EQ(float(sum.local()(0, 0)), want);
        EXPECT_EQ(float(start_redistribute<replicated>(x).wait().local()(0, 0)), want);
        const auto share = redistribute<split_cols(tp)>(x);
        if (share.local().size() > 0) {
            EXPECT_EQ(float(share.local()(0, 0)), want);
        }
        const auto padded = redistribute<partial(tp)>(share);
        EXPECT_EQ(float(redistribute<replicated>(padded).local()(0, 0)), want);
    });
}

TEST(redistribute, sends_what_its_collective_sends_and_no_more) {
    const auto sent = [](const Mesh& mesh, auto&& move) {
        const Axes all = dp | tp;
        const Index before = mesh[tp].traffic().bytes + mesh[dp].traffic().bytes + mesh[all].traffic().bytes;
        move();
        const Index after = mesh[tp].traffic().bytes + mesh[dp].traffic().bytes + mesh[all].traffic().bytes;
        return (after - before) / Index(sizeof(double));
    };
    on_mesh({{Axes::dp, 2}, {Axes::tp, 3}}, [&](const Mesh& mesh) {
        const Partition widths = Partition::of_sizes({4, 2, 1});
        const Index own = widths.count(mesh.rank(tp));
        const auto x = filled<split_rows(tp)>(mesh, widths, 5);
        EXPECT_EQ(sent(mesh, [&] { redistribute<replicated>(x); }), 2 * own * 5);
        EXPECT_EQ(sent(mesh, [&] { redistribute<split_cols(tp)>(x, 7, Partition::of_sizes({2, 2, 1})); }),
                  own * (5 - std::array{2, 2, 1}[std::size_t(mesh.rank(tp))]));
        EXPECT_EQ(sent(mesh, [&] { redistribute<split_rows(dp | tp)>(x); }), 0);
        const auto summand = filled<partial(tp)>(mesh, 7, 5);
        EXPECT_EQ(sent(mesh, [&] { redistribute<split_rows(tp)>(summand, widths, 5); }), (7 - own) * 5);
        const auto whole = filled<replicated>(mesh, 7, 5);
        EXPECT_EQ(sent(mesh, [&] { redistribute<split_rows(tp)>(whole, widths, 5); }), 0);

        // Rows from three parts to two: each element that is not there already comes once, from a rank of its own dp.
        const Partition halves = Partition::balanced(7, 2);
        Index missing = 7;
        for (Index i = 0; i < x.row_runs().size(); ++i)
            missing -= halves.runs(mesh.rank(dp)).find(x.row_runs()[i]) ? 1 : 0;
        std::vector<Index> totals = {sent(mesh, [&] { redistribute<split_rows(dp)>(x, halves, 5); }),
                                     (halves.count(mesh.rank(dp)) - 7 + missing) * 5};
        mesh.world().all_reduce(totals);
        EXPECT_EQ(totals[0], totals[1]);
    });
}

namespace {

/// Elements that bfloat16 does not hold.
template <Placement Where, class S>
Sharded<S, Where> long_numbers(const Mesh& mesh, const Extent& rows, const Extent& cols, bool rounded) {
    return Sharded<S, Where>::from_global(mesh, rows, cols, [&](Index i, Index j) {
        const float number = std::sin(float(5 * i + j));
        return S(rounded ? float(bfloat16(number)) : number);
    });
}

template <class S, Placement From, Placement To>
void check_narrow_pair(const Mesh& mesh, Index rows, Index cols) {
    SCOPED_TRACE(concat(From, " -> ", To, ", ", shape(rows, cols)));
    const auto check = [&](const auto&... there) {
        const Partition from_rows = scrambled(mesh, From.rows, rows), from_cols = scrambled(mesh, From.cols, cols);
        const auto x = long_numbers<From, S>(mesh, from_rows, from_cols, false);
        const auto want = redistribute<To>(long_numbers<From, S>(mesh, from_rows, from_cols, true), there...);
        EXPECT_TRUE(same_bits(redistribute<To>(x, there..., WireType::bf16).strided(), want.strided()));
        EXPECT_TRUE(same_bits(redistribute<To>(x.clone(), there..., WireType::bf16).strided(), want.strided()));
        EXPECT_TRUE(same_bits(redistribute<To>(x, there..., WireType::unchanged).strided(),
                              redistribute<To>(x, there...).strided()));
    };
    check();
    check(Extent(scrambled(mesh, To.rows, rows)), Extent(scrambled(mesh, To.cols, cols)));
}

template <class S, Placement From, Placement... To>
void check_narrow_from(const Mesh& mesh, PlacementList<To...>) {
    (check_narrow_pair<S, From, To>(mesh, 5, 10), ...);
    (check_narrow_pair<S, From, To>(mesh, 1, 2), ...);
}

template <class S, Placement... All>
void check_narrow(const Mesh& mesh, PlacementList<All...> list) {
    (check_narrow_from<S, All>(mesh, list), ...);
}

} // namespace

TEST(redistribute, a_narrow_wire_has_the_bits_of_numbers_rounded_before) {
    constexpr PlacementList<replicated, split_rows(tp), split_cols(tp)> no_sums;
    on_every_world([&](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        check_narrow<float>(mesh, no_sums);
        check_narrow<double>(mesh, no_sums);
        check_narrow<bfloat16>(mesh, no_sums);
    });
}

TEST(redistribute, a_narrow_wire_carries_two_bytes_an_element) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Partition rows = scrambled(mesh, tp, 11);
        const Index own = rows.count(mesh.rank(tp)), others = world.size() - 1;
        const auto bytes = [&](auto&& move) {
            const Index before = mesh[tp].traffic().bytes;
            move();
            return mesh[tp].traffic().bytes - before;
        };
        const auto x = long_numbers<split_rows(tp), double>(mesh, rows, 6, false);
        EXPECT_EQ(bytes([&] { redistribute<replicated>(x, 11, 6, WireType::bf16); }), others * own * 6 * 2);
        const Partition columns = Partition::balanced(6, world.size());
        EXPECT_EQ(bytes([&] { redistribute<split_cols(tp)>(x, 11, columns, WireType::bf16); }),
                  own * (6 - columns.count(mesh.rank(tp))) * 2);
    });
}

TEST(redistribute, runs_under_a_computation) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        auto gathering = start_redistribute<replicated>(filled<split_rows(tp)>(mesh, 7, 3));
        auto summing = start_redistribute<split_cols(tp)>(filled<partial(tp)>(mesh, 3, 7));
        auto moving = start_redistribute<split_cols(tp)>(filled<split_rows(tp)>(mesh, 4, 5));
        while (!moving.done())
            std::this_thread::yield();
        expect_values(moving.wait());
        expect_values(summing.wait());
        expect_values(gathering.wait());
    });
}

TEST(redistribute, overlapping_columns_are_taken_once) {
    on_world(3, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const Partition shared = Partition::of_runs(5, {Runs::range(0, 3), {{3, 1, 1}, {1, 1, 2}}, Runs::range(2, 3)});
        const auto x = filled<split_cols(tp)>(mesh, 2, shared);
        expect_values(redistribute<replicated>(x));
        expect_values(redistribute<split_rows(tp)>(x));
        expect_values(redistribute<split_cols(tp)>(x, 2, 5));
        expect_values(redistribute<partial(tp)>(x));
        expect_values(redistribute<split_cols(tp)>(filled<split_rows(tp)>(mesh, 2, 5), 2, shared));
        expect_values(redistribute<split_cols(tp)>(filled<partial(tp)>(mesh, 2, 5), 2, shared));
        expect_values(redistribute<split_cols(tp)>(filled<split_cols(tp)>(mesh, 2, 5), 2, shared));
    });
}

} // namespace redistribute_test
