#include "support/bits.hpp"
#include "support/faults.hpp"
#include "support/worlds.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/comm/trace.hpp>
#include <reigen/core/memory.hpp>
#include <reigen/core/random.hpp>
#include <reigen/matmul/all_gather_matmul.hpp>
#include <reigen/matmul/packed_shard.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace overlap_wire_test {

using namespace reigen;

// Products of rows that travel as bfloat16: the bits of rows rounded beforehand, at half of float's bytes or a quarter
// of double's, in steps as before.

namespace {

constexpr Index k = 37;
constexpr Index n = 19;
constexpr WireType narrow = WireType::bf16;

double number(Index i, Index j, int seed) {
    return RandomStream(std::uint64_t(seed), 7).uniform(i * 4099 + j) - 0.5;
}

template <class S, Placement Where>
Sharded<S, Where> numbers(const Mesh& mesh, const Extent& rows, const Extent& cols, int seed) {
    return Sharded<S, Where>::from_global(mesh, rows, cols, [&](Index i, Index j) { return S(number(i, j, seed)); });
}

/// `numbers`, each rounded to bfloat16.
template <class S, Placement Where>
Sharded<S, Where> rounded_numbers(const Mesh& mesh, const Extent& rows, const Extent& cols, int seed) {
    return Sharded<S, Where>::from_global(
        mesh, rows, cols, [&](Index i, Index j) { return S(float(bfloat16(float(number(i, j, seed))))); });
}

template <class X, class Y>
bool same_matrix(const X& x, const Y& y) {
    static_assert(std::is_same_v<X, Y>);
    return x.spec() == y.spec() && same_bits(x, y);
}

/// Rows over the ranks: enough for steps evenly, unevenly, with empty shares; and too few for steps, or none.
std::vector<Partition> divisions(int ranks) {
    const Index rows = 131 * ranks + 2;
    std::vector<Index> uneven, first_empty, one_has_all;
    for (int r = 0; r < ranks; ++r) {
        uneven.push_back(100 + 37 * r);
        first_empty.push_back(r == 0 ? 0 : 200 + r);
        one_has_all.push_back(r == ranks / 2 ? rows : 0);
    }
    std::vector<Partition> result = {Partition::balanced(rows, ranks), Partition::of_sizes(one_has_all),
                                     Partition::of_sizes(uneven), Partition::balanced(7, ranks),
                                     Partition::balanced(0, ranks)};
    if (ranks > 1)
        result.push_back(Partition::of_sizes(first_empty));
    return result;
}

template <class S>
void expect_as_plain(const Mesh& mesh, const Partition& rows) {
    const auto x = numbers<S, split_rows(tp)>(mesh, rows, k, 1);
    const auto w = numbers<S, split_cols(tp)>(mesh, k, n, 2);
    const auto v = numbers<S, split_rows(tp)>(mesh, n, k, 3);
    const auto whole = redistribute<replicated>(x, narrow);
    const auto plain = matmul(whole, w);
    EXPECT_TRUE(same_matrix(whole, rounded_numbers<S, replicated>(mesh, rows.size(), k, 1)));
    EXPECT_TRUE(same_matrix(all_gather_matmul<replicated, narrow>(x, w), plain));
    EXPECT_TRUE(same_matrix(all_gather_matmul<replicated, narrow>(x, PackedShard(w)), plain));
    const auto [dx, kept] = all_gather_matmul_keeping<replicated, narrow>(x, transpose(v));
    EXPECT_TRUE(same_matrix(kept, whole));
    EXPECT_TRUE(same_matrix(dx, matmul(whole, transpose(v))));
    const auto started = start_redistribute<replicated, narrow>(x).wait();
    EXPECT_TRUE(same_matrix(started, whole));
    EXPECT_TRUE(same_matrix(start_redistribute<replicated, narrow>(x.clone()).wait(), whole));
    EXPECT_TRUE(same_matrix(all_gather_matmul<replicated, narrow>(whole, w), plain)); // nothing is gathered
}

template <class S>
void expect_all_as_plain(const Mesh& mesh) {
    for (const Partition& rows : divisions(mesh.size(tp)))
        expect_as_plain<S>(mesh, rows);
}

} // namespace

TEST(overlap_wire, has_the_bits_of_rows_rounded_before) {
    on_every_world([](const Communicator& world) {
        for (const Communicator& ranks : {world, faulty(world, {})}) {
            const Mesh mesh(ranks, {{Axes::tp, world.size()}});
            expect_all_as_plain<float>(mesh);
            expect_all_as_plain<double>(mesh);
            expect_all_as_plain<bfloat16>(mesh);
        }
    });
}

TEST(overlap_wire, has_the_same_bits_on_a_bad_transport) {
    const std::vector<FaultPlan> plans = {{.delay = 3e-4, .late = 5}, {.late = 1, .synchronous = true, .block = 700}};
    on_every_world([&](const Communicator& world) {
        for (const FaultPlan& plan : plans) {
            const Mesh mesh(faulty(unchecked(world), plan), {{Axes::tp, world.size()}});
            expect_all_as_plain<float>(mesh);
            expect_all_as_plain<double>(mesh);
        }
    });
}

TEST(overlap_wire, rows_of_views_and_of_several_axes_have_the_bits_of_rows_rounded_before) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& in_place) {
        const Mesh mesh(faulty(in_place.world(), {}), in_place.axes());
        const auto x = numbers<double, split_rows(dp | tp)>(mesh, 611, k, 1);
        const auto w = numbers<double, replicated>(mesh, k, n, 2);
        const auto view = x.view();
        EXPECT_TRUE(same_matrix(all_gather_matmul<split_rows(dp), narrow>(view, w),
                                matmul(redistribute<split_rows(dp)>(x, narrow), w)));
        EXPECT_TRUE(
            same_matrix(all_gather_matmul<replicated, narrow>(x, w), matmul(redistribute<replicated>(x, narrow), w)));
    });
}

namespace {

template <class Call>
Traffic sent_by(const Communicator& ranks, Call call) {
    const Traffic before = ranks.traffic();
    call();
    return ranks.traffic() - before;
}

/// Two bytes an element of this rank's rows to every other rank, each in one message.
template <class S>
void expect_bytes(const Mesh& mesh, const Partition& rows) {
    const Index others = mesh.size(tp) - 1, own = rows.count(mesh.rank(tp)) * k;
    const auto x = numbers<S, split_rows(tp)>(mesh, rows, k, 1);
    const auto w = numbers<S, split_cols(tp)>(mesh, k, n, 2);
    const auto expect = [&](Traffic sent) {
        EXPECT_EQ(sent.bytes, others * own * 2);
        EXPECT_EQ(sent.messages, own > 0 ? others : 0);
    };
    expect(sent_by(mesh[tp], [&] { all_gather_matmul<replicated, narrow>(x, w); }));
    expect(sent_by(mesh[tp], [&] { all_gather_matmul_keeping<replicated, narrow>(x, w); }));
}

} // namespace

TEST(overlap_wire, sends_two_bytes_an_element) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(faulty(unchecked(world), {}), {{Axes::tp, world.size()}}); // counts messages only
        for (const Partition& rows : divisions(world.size()))
            if (rows.size() > 64 * world.size()) { // in steps
                expect_bytes<float>(mesh, rows);
                expect_bytes<double>(mesh, rows);
                expect_bytes<bfloat16>(mesh, rows);
            }
        const Index few = 5 * world.size();
        const auto x = numbers<double, split_rows(tp)>(mesh, few, k, 1);
        const auto w = numbers<double, split_cols(tp)>(mesh, k, n, 2);
        EXPECT_EQ(sent_by(mesh[tp], [&] { all_gather_matmul<replicated, narrow>(x, w); }).bytes,
                  (world.size() - 1) * 5 * k * 2);
        EXPECT_EQ(sent_by(mesh[tp], [&] { start_redistribute<replicated, narrow>(x).wait(); }).bytes,
                  (world.size() - 1) * 5 * k * 2);
    });
}

TEST(overlap_wire, works_in_steps) {
    on_world(3, [](const Communicator& world) {
        const Trace trace(faulty(world, {}));
        const Mesh mesh(trace.world(), {{Axes::tp, 3}});
        const auto w = numbers<float, split_cols(tp)>(mesh, k, n, 2);
        all_gather_matmul<replicated, narrow>(numbers<float, split_rows(tp)>(mesh, 3 * 64, k, 1), w);
        const TraceSummary summary = trace.summary();
        const auto* const sends = summary.find("send", "tp");
        ASSERT_NE(sends, nullptr);
        EXPECT_EQ(sends->total().count, 3 * 2);
        EXPECT_EQ(summary.find("all_gather", "tp"), nullptr);
    });
}

namespace {

/// What the product holds of messages at most, in parts of x of one rank.
template <class S>
double parts_held(const Mesh& mesh, Index own_rows) {
    const auto x = numbers<S, split_rows(tp)>(mesh, own_rows * mesh.size(tp), k, 1);
    const auto w = numbers<S, split_cols(tp)>(mesh, k, n, 2);
    const auto held = [] { return memory_account()->of(MemoryUse::messages); };
    memory_account()->reset_peaks();
    const Index before = held().current;
    all_gather_matmul<replicated, narrow>(x, w);
    return double(held().peak - before) / double(own_rows * k * Index(sizeof(S)));
}

} // namespace

TEST(overlap_wire, holds_three_parts_of_float_and_two_of_double) {
    on_world(4, [](const Communicator& world) {
        const Mesh mesh(faulty(unchecked(world), {}), {{Axes::tp, 4}});
        EXPECT_EQ(parts_held<float>(mesh, 100), 3);
        EXPECT_EQ(parts_held<double>(mesh, 100), 2);
    });
}

// |y' - y| <= 2^-8 |x| |w|.
TEST(overlap_wire, rounding_moves_the_product_no_further_than_promised) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(faulty(world, {}), {{Axes::tp, world.size()}});
        const Index rows = 70 * world.size();
        const auto x = numbers<double, split_rows(tp)>(mesh, rows, k, 1);
        const auto w = numbers<double, split_cols(tp)>(mesh, k, n, 2);
        const auto y = all_gather_matmul<replicated, narrow>(x, w);
        double most = 0; // of what is promised
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < y.local().cols(); ++j) {
                double exact = 0, magnitude = 0;
                for (Index l = 0; l < k; ++l) {
                    const double term = number(i, l, 1) * number(l, y.col_runs()[j], 2);
                    exact += term;
                    magnitude += std::abs(term);
                }
                most = std::max(most, std::abs(y.local()(i, j) - exact) / (magnitude / 256));
            }
        EXPECT_LE(most, 1);
        EXPECT_GE(most, 0.1); // they were rounded, and the promise is not empty
    });
}

namespace {

/// What a rank is told where the last one sends as bfloat16 and the others do not.
std::string told(const Communicator& ranks, Index rows) {
    const Mesh mesh(ranks, {{Axes::tp, ranks.size()}});
    const auto x = numbers<float, split_rows(tp)>(mesh, rows, k, 1);
    const auto w = numbers<float, split_cols(tp)>(mesh, k, n, 2);
    try {
        if (ranks.rank() + 1 == ranks.size())
            all_gather_matmul<replicated, narrow>(x, w);
        else
            all_gather_matmul<replicated>(x, w);
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing";
}

} // namespace

TEST(overlap_wire, ranks_that_send_different_types_are_told_where_they_are_compared) {
    for (const int size : {2, 3})
        for (const Index rows : {600, 12}) // in steps, and at once
            on_world(size, [&](const Communicator& world) {
                const std::string words = told(checked(faulty(unchecked(world), {})), rows);
                EXPECT_NE(words.find("rank 0"), std::string::npos) << words;
                EXPECT_NE(words.find("bfloat16"), std::string::npos) << words;
            });
}

TEST(overlap_wire, ranks_that_send_different_types_fail_where_they_are_not_compared) {
    for (const int size : {2, 3})
        on_world(size, [&](const Communicator& world) {
            const Communicator ranks = faulty(unchecked(world), {});
            ranks.set_deadline(1);
            EXPECT_NE(told(ranks, 600), "nothing");
        });
}

} // namespace overlap_wire_test
