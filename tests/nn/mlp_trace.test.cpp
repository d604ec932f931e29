#include "comm/trace/support.hpp"
#include "nn/support.hpp"

#include <reigen/nn/mlp.hpp>

namespace mlp_trace_test {

using namespace layer_cases;
using namespace reigen;

// What a column- and a row-parallel product send forward and backward, by the counts of a trace, against the closed
// forms: T tokens of K features, w bytes each.

namespace {

constexpr Index width = 6;
constexpr Index bytes_each = sizeof(double);
const Sequences sequences{2, 5, SequenceLayout::contiguous};
constexpr Index elements = 10 * width;

TraceCost cost(const TraceSummary& summary, const char* operation, int rank) {
    return trace_cases::cost(summary, operation, "tp", rank);
}

void expect_cost(const TraceCost& got, const TraceCost& want, const char* what) {
    EXPECT_EQ(got.count, want.count) << what;
    EXPECT_EQ(got.messages, want.messages) << what;
    EXPECT_EQ(got.bytes, want.bytes) << what;
}

/// n + (P - 2) n_r elements, n_r the slice of which rank r makes the sum; two ranks exchange so small a vector whole.
TraceCost of_all_reduce(Index n, int ranks, int rank) {
    const Index slice = n / ranks + (rank < n % ranks ? 1 : 0);
    return {1, ranks == 2 ? 1 : 2 * (ranks - 1), (n + (ranks - 2) * slice) * bytes_each};
}

TraceCost of_all_gather(Index mine, int ranks) {
    return {1, ranks - 1, (ranks - 1) * mine * bytes_each};
}

TraceCost of_reduce_scatter(Index n, Index mine, int ranks) {
    return {1, ranks - 1, (n - mine) * bytes_each};
}

template <Placement Residual>
struct Passed {
    TraceSummary forward, both;
    Index mine; // elements of the residual stream on this rank
};

template <Placement Residual>
Passed<Residual> pass(const Communicator& ranks) {
    using Tokens = Sharded<double, Residual>;
    const Trace trace(ranks);
    const Mesh mesh(trace.world(), {{tp, ranks.size()}});
    Mlp<double, Residual> mlp(mesh, "mlp", width, 8, MlpKind::gelu, {.deviation = 1}, {.deviation = 1});
    const Partition rows = sequences.rows(mesh, Residual.rows);
    const auto dy = Tokens::from_global(mesh, rows, width, waves(2, 10, width));
    auto [y, saved] = mlp.forward(Tokens::from_global(mesh, rows, width, waves(1, 10, width)));
    const TraceSummary forward = trace.summary();
    mlp.backward(std::move(saved), dy);
    return {forward, trace.summary(), dy.local().size()};
}

TraceCost times(Index count, TraceCost once) {
    return {count * once.count, count * once.messages, count * once.bytes};
}

} // namespace

TEST(mlp_trace, two_all_reduces_where_every_rank_has_all_tokens) {
    on_every_world([](const Communicator& ranks) {
        const auto passed = pass<residual_on_every_rank>(ranks);
        const int P = ranks.size();
        const TraceCost once = P == 1 ? TraceCost{} : of_all_reduce(elements, P, ranks.rank());
        expect_cost(cost(passed.forward, "all_reduce", ranks.rank()), once, "y");
        expect_cost(cost(passed.both, "all_reduce", ranks.rank()), times(2, once), "y and dx");
        for (const char* const other : {"all_gather", "reduce_scatter", "all_to_all", "send"})
            EXPECT_EQ(cost(passed.both, other, ranks.rank()).messages, 0) << other;
    });
}

TEST(mlp_trace, gathers_and_scatters_where_tokens_are_split) {
    on_every_world([](const Communicator& ranks) {
        const auto passed = pass<residual_over_tp>(ranks);
        const int P = ranks.size();
        const TraceCost gather = P == 1 ? TraceCost{} : of_all_gather(passed.mine, P);
        const TraceCost scatter = P == 1 ? TraceCost{} : of_reduce_scatter(elements, passed.mine, P);
        expect_cost(cost(passed.forward, "all_gather", ranks.rank()), gather, "x");
        expect_cost(cost(passed.forward, "reduce_scatter", ranks.rank()), scatter, "y");
        expect_cost(cost(passed.both, "all_gather", ranks.rank()), times(3, gather), "x, dy and x again");
        expect_cost(cost(passed.both, "reduce_scatter", ranks.rank()), times(2, scatter), "y and dx");
        for (const char* const other : {"all_reduce", "all_to_all", "send"})
            EXPECT_EQ(cost(passed.both, other, ranks.rank()).messages, 0) << other;
    });
}

TEST(mlp_trace, splitting_the_tokens_sends_forward_the_bytes_of_one_all_reduce) {
    on_every_world([](const Communicator& ranks) {
        const auto whole = pass<residual_on_every_rank>(ranks).forward;
        const auto split = pass<residual_over_tp>(ranks).forward;
        const auto bytes = [](const TraceSummary& summary, const char* operation) {
            const auto* const row = summary.find(operation, "tp");
            return row != nullptr ? row->total().bytes : 0;
        };
        EXPECT_EQ(bytes(split, "all_gather") + bytes(split, "reduce_scatter"),
                  2 * (ranks.size() - 1) * elements * bytes_each);
        // Two ranks send so small a vector whole, which is as much; of three and more each sums a slice.
        EXPECT_EQ(bytes(whole, "all_reduce"), 2 * (ranks.size() - 1) * elements * bytes_each);
    });
}

} // namespace mlp_trace_test
