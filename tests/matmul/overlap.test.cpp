#include "support/bits.hpp"
#include "support/faults.hpp"
#include "support/words.hpp"
#include "support/worlds.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/comm/trace.hpp>
#include <reigen/core/random.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/matmul/all_gather_matmul.hpp>
#include <reigen/matmul/matmul_reduce_scatter.hpp>
#include <reigen/matmul/packed_shard.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace overlap_test {

using namespace reigen;

// Products that are overlapped with their messages against the two calls that they stand for: equal bits, bytes and
// messages. Enough rows for steps, few columns.

namespace {

constexpr Index k = 37;
constexpr Index n = 19;
constexpr Axes R = dp | cp;

template <class S, Placement Where>
Sharded<S, Where> numbers(const Mesh& mesh, const Extent& rows, const Extent& cols, int seed) {
    const RandomStream stream(std::uint64_t(seed), 7);
    return Sharded<S, Where>::from_global(mesh, rows, cols,
                                          [&](Index i, Index j) { return S(stream.uniform(i * 4099 + j) - 0.5); });
}

template <class X, class Y>
bool same_matrix(const X& x, const Y& y) {
    static_assert(std::is_same_v<X, Y>);
    return x.spec() == y.spec() && same_bits(x, y);
}

/// Rows that tp divides in several ways, all enough for steps of a product: evenly, unevenly, with empty shares.
std::vector<Partition> divisions(int ranks) {
    const Index rows = 131 * ranks + 2;
    std::vector<Index> uneven, first_empty, one_has_all;
    for (int r = 0; r < ranks; ++r) {
        uneven.push_back(100 + 37 * r);
        first_empty.push_back(r == 0 ? 0 : 200 + r);
        one_has_all.push_back(r == ranks / 2 ? rows : 0);
    }
    std::vector<Partition> result = {Partition::balanced(rows, ranks), Partition::of_sizes(one_has_all)};
    if (ranks > 1) {
        result.push_back(Partition::of_sizes(uneven));
        result.push_back(Partition::of_sizes(first_empty));
    }
    return result;
}

template <class S>
void expect_gathered_as_plain(const Mesh& mesh, const Partition& rows) {
    const auto x = numbers<S, split_rows(tp)>(mesh, rows, k, 1);
    const auto w = numbers<S, split_cols(tp)>(mesh, k, n, 2);
    const auto plain = matmul(redistribute<replicated>(x), w);
    EXPECT_TRUE(same_matrix(all_gather_matmul<replicated>(x, w), plain));
    EXPECT_TRUE(same_matrix(all_gather_matmul<replicated>(x, PackedShard(w)), plain));
    const auto v = numbers<S, split_rows(tp)>(mesh, n, k, 3);
    const auto [dx, whole] = all_gather_matmul_keeping<replicated>(x, transpose(v));
    EXPECT_TRUE(same_matrix(whole, redistribute<replicated>(x)));
    EXPECT_TRUE(same_matrix(dx, matmul(whole, transpose(v))));
}

template <class S>
void expect_scattered_as_plain(const Mesh& mesh, const Partition& rows) {
    const auto h = numbers<S, split_cols(tp)>(mesh, rows.size(), k, 1);
    const auto w = numbers<S, split_rows(tp)>(mesh, k, n, 2);
    const auto plain = redistribute<split_rows(tp)>(matmul(h, w), rows, n);
    EXPECT_TRUE(same_matrix(matmul_reduce_scatter<split_rows(tp)>(h, w, rows), plain));
    EXPECT_TRUE(same_matrix(matmul_reduce_scatter<split_rows(tp)>(h, PackedShard(w), rows), plain));
}

template <class S>
void expect_all_as_plain(const Mesh& mesh) {
    for (const Partition& rows : divisions(mesh.size(tp))) {
        expect_gathered_as_plain<S>(mesh, rows);
        expect_scattered_as_plain<S>(mesh, rows);
    }
}

} // namespace

// Where ranks read each other's memory the plain calls are made; over messages, steps.
TEST(overlap, has_the_bits_of_product_and_collective) {
    on_every_world([](const Communicator& world) {
        for (const Communicator& ranks : {world, faulty(world, {})}) {
            const Mesh mesh(ranks, {{Axes::tp, world.size()}});
            expect_all_as_plain<float>(mesh);
            expect_all_as_plain<double>(mesh);
            expect_all_as_plain<bfloat16>(mesh);
        }
    });
}

TEST(overlap, has_the_same_bits_on_a_bad_transport) {
    const std::vector<FaultPlan> plans = {{.delay = 3e-4, .late = 5},
                                          {.delay = 1e-4, .late = 1, .synchronous = true},
                                          {.late = 1, .synchronous = true, .block = 700}};
    on_every_world([&](const Communicator& world) {
        for (const FaultPlan& plan : plans) {
            const Mesh mesh(faulty(unchecked(world), plan), {{Axes::tp, world.size()}});
            for (int round = 0; round < 5; ++round)
                expect_all_as_plain<float>(mesh);
        }
    });
}

TEST(overlap, takes_the_axes_that_divide_tokens_as_they_are) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& in_place) {
        const Mesh mesh(faulty(in_place.world(), {}), in_place.axes());
        const auto h = numbers < float, split_rows(R) | split_cols(tp) > (mesh, 611, k, 1);
        const auto w = numbers<float, split_rows(tp)>(mesh, k, n, 2);
        const auto y = matmul_reduce_scatter<split_rows(R | tp)>(h, w);
        EXPECT_TRUE(same_matrix(y, redistribute<split_rows(R | tp)>(matmul(h, w))));
        const auto v = numbers<float, split_cols(tp)>(mesh, n, k, 3);
        EXPECT_TRUE(same_matrix(all_gather_matmul<split_rows(R)>(y, v), matmul(redistribute<split_rows(R)>(y), v)));
    });
}

TEST(overlap, takes_several_axes_at_once) {
    on_mesh({{Axes::cp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        const auto h = numbers<double, split_cols(cp | tp)>(mesh, 601, k, 1);
        const auto w = numbers<double, split_rows(cp | tp)>(mesh, k, n, 2);
        const auto y = matmul_reduce_scatter<split_rows(cp | tp)>(h, w);
        EXPECT_TRUE(same_matrix(y, redistribute<split_rows(cp | tp)>(matmul(h, w))));
        const auto v = numbers<double, replicated>(mesh, n, k, 3);
        EXPECT_TRUE(same_matrix(all_gather_matmul<replicated>(y, v), matmul(redistribute<replicated>(y), v)));
    });
}

TEST(overlap, rows_that_lie_elsewhere_are_the_two_calls) {
    on_mesh({{Axes::tp, 2}}, [](const Mesh& mesh) {
        const Partition dealt = Partition::of_runs(600, {{{1, 2, 300}}, {{0, 2, 300}}});
        const auto x = numbers<float, split_rows(tp)>(mesh, dealt, k, 1);
        const auto w = numbers<float, split_cols(tp)>(mesh, k, n, 2);
        EXPECT_TRUE(same_matrix(all_gather_matmul<replicated>(x, w), matmul(redistribute<replicated>(x), w)));
        const auto h = numbers<float, split_cols(tp)>(mesh, 600, k, 1);
        const auto v = numbers<float, split_rows(tp)>(mesh, k, n, 2);
        EXPECT_TRUE(same_matrix(matmul_reduce_scatter<split_rows(tp)>(h, v, dealt),
                                redistribute<split_rows(tp)>(matmul(h, v), dealt, n)));
        const auto turned = numbers<float, replicated>(mesh, 600, k, 1);
        const auto none_gathered = all_gather_matmul<replicated>(turned, w);
        EXPECT_TRUE(same_matrix(none_gathered, matmul(turned, w)));
    });
}

namespace {

/// What the call sends from this rank.
template <class Call>
Traffic sent_by(const Communicator& ranks, Call call) {
    const Traffic before = ranks.traffic();
    call();
    return ranks.traffic() - before;
}

void expect_traffic(Traffic got, Index messages, Index elements) {
    EXPECT_EQ(got.messages, messages);
    EXPECT_EQ(got.bytes, elements * Index(sizeof(float)));
}

Index others_with_rows(const Partition& rows, int rank) {
    Index others = 0;
    for (int q = 0; q < rows.ranks(); ++q)
        others += q != rank && rows.count(q) > 0;
    return others;
}

} // namespace

TEST(overlap, sends_what_the_collectives_send) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(faulty(unchecked(world), {}), {{Axes::tp, world.size()}}); // counts messages only
        const Communicator& ranks = mesh[tp];
        const int P = world.size(), r = world.rank();
        const auto w = numbers<float, split_cols(tp)>(mesh, k, n, 2);
        const auto v = numbers<float, split_rows(tp)>(mesh, k, n, 2);
        for (const Partition& rows : divisions(P)) {
            const Index m_r = rows.count(r);
            const auto x = numbers<float, split_rows(tp)>(mesh, rows, k, 1);
            expect_traffic(sent_by(ranks, [&] { all_gather_matmul<replicated>(x, w); }), m_r > 0 ? P - 1 : 0,
                           (P - 1) * m_r * k);
            const auto h = numbers<float, split_cols(tp)>(mesh, rows.size(), k, 1);
            expect_traffic(sent_by(ranks, [&] { matmul_reduce_scatter<split_rows(tp)>(h, v, rows); }),
                           others_with_rows(rows, r), (rows.size() - m_r) * n);
        }
    });
}

TEST(overlap, works_in_steps_with_enough_rows_and_only_then) {
    on_world(3, [](const Communicator& world) {
        const auto calls = [&](Index rows, const char* operation) {
            const Trace trace(faulty(world, {}));
            const Mesh mesh(trace.world(), {{Axes::tp, 3}});
            const auto x = numbers<float, split_rows(tp)>(mesh, rows, k, 1);
            const auto h = numbers<float, split_cols(tp)>(mesh, rows, k, 1);
            all_gather_matmul<replicated>(x, numbers<float, split_cols(tp)>(mesh, k, n, 2));
            const auto v = numbers<float, split_rows(tp)>(mesh, k, n, 2);
            matmul_reduce_scatter<split_rows(tp)>(h, v);
            const TraceSummary summary = trace.summary();
            const auto* const row = summary.find(operation, "tp");
            return row == nullptr ? Index(0) : row->total().count / 3;
        };
        EXPECT_EQ(calls(3 * 64, "send"), 4); // two of each
        EXPECT_EQ(calls(3 * 64, "all_gather"), 0);
        EXPECT_EQ(calls(3 * 64, "reduce_scatter"), 0);
        EXPECT_EQ(calls(3 * 64 - 1, "send"), 0);
        EXPECT_EQ(calls(3 * 64 - 1, "all_gather"), 1);
        EXPECT_EQ(calls(3 * 64 - 1, "reduce_scatter"), 1);
    });
}

TEST(overlap, shapes_that_do_not_fit_throw_on_every_rank_before_any_message) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Traffic before = traffic_of_rank();
        const Sharded<float, split_rows(tp)> x(mesh, 600, 4), v(mesh, 6, 5);
        const Sharded<float, split_cols(tp)> w(mesh, 5, 6), h(mesh, 600, 4);
        EXPECT_EQ(words_of<ShapeError>([&] { all_gather_matmul<replicated>(x, w); }),
                  "all_gather_matmul: a is 600x4, b is 5x6");
        EXPECT_EQ(words_of<ShapeError>([&] { all_gather_matmul_keeping<replicated>(x, w); }),
                  "all_gather_matmul: a is 600x4, b is 5x6");
        EXPECT_EQ(words_of<ShapeError>([&] { matmul_reduce_scatter<split_rows(tp)>(h, v); }),
                  "matmul_reduce_scatter: a is 600x4, b is 6x5");
        const Sharded<float, split_rows(tp)> fits(mesh, 4, 5);
        EXPECT_EQ(words_of<ShapeError>([&] { matmul_reduce_scatter<split_rows(tp)>(h, fits, 599); }),
                  "matmul_reduce_scatter: a b is 600x5, the partition of its rows is for 599");
        EXPECT_EQ(traffic_of_rank(), before);
    });
}

TEST(overlap, ranks_with_different_shapes_are_told_where_they_are_compared) {
    on_world(2, [](const Communicator& world) {
        const Communicator compared = checked(unchecked(world));
        const Mesh mesh(compared, {{Axes::tp, 2}});
        const Sharded<float, split_rows(tp)> x(mesh, 600 + 2 * world.rank(), 4);
        const Sharded<float, split_cols(tp)> w(mesh, 4, 6);
        EXPECT_THROW(all_gather_matmul<replicated>(x, w), DisagreementError);
    });
}

} // namespace overlap_test
