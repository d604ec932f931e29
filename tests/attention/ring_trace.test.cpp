#include "attention/ring_cases.hpp"

#include <reigen/comm/trace.hpp>

namespace ring_trace_test {

using namespace ring_cases;

// What ring attention sends, by the counts of a trace, against the closed forms.

namespace {

/// What this rank sent, in all operations.
Traffic sent(const Trace& trace) {
    const TraceSummary summary = trace.summary();
    Traffic all;
    for (const TraceSummary::Row& row : summary.rows) {
        const TraceCost& mine = row.ranks[std::size_t(trace.world().rank())];
        all = all + Traffic{mine.messages, mine.bytes};
    }
    EXPECT_EQ(summary.unmatched, 0);
    return all;
}

/// Tokens of a rank's block.
Index tokens(const ReferenceProblem& p, SequenceLayout layout, int ranks, int rank) {
    return sequences(p.k, layout).positions(ranks, rank).size();
}

/// Keys and values of S_j tokens: B S_j Hkv (d + dv) numbers.
Index block(const ReferenceProblem& p, Index block_tokens) {
    return p.k.batch * block_tokens * p.k.heads * (p.k.dim + p.v.dim);
}

template <class T>
void backward(const Divided<T>& parts, const Mask& mask) {
    const auto got = parts.attend({mask});
    auto dq = parts.q.clone(), dk = parts.k.clone(), dv = parts.v.clone();
    ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), got.out, got.lse, got.out,
                            heads(dq, parts.of_queries, parts.head_dim), heads(dk, parts.of_keys, parts.head_dim),
                            heads(dv, parts.of_keys, parts.value_dim), {mask});
}

/// With no mask every block passes all ranks: a rank sends every block but the one that ends its way on it, which is
/// that of the next rank.
template <class T>
void expect_forward(const ReferenceProblem& p, const Communicator& ranks, SequenceLayout layout) {
    const Trace trace(ranks);
    Divided<T>(ring_of(trace.world()), p, layout).attend({p.mask});
    const int next = (ranks.rank() + 1) % ranks.size();
    const Index others = p.k.tokens - tokens(p, layout, ranks.size(), next);
    const Traffic want = {ranks.size() - 1, block(p, others) * Index(sizeof(T))};
    EXPECT_EQ(sent(trace), ranks.size() == 1 ? Traffic{} : want) << to_string(layout);
}

/// Forward and backward: the blocks twice, and for each block that was sent its sums of gradients, which have been
/// where it has and come home: every block's but this rank's own.
template <class T>
void expect_backward(const ReferenceProblem& p, const Communicator& ranks, SequenceLayout layout) {
    const Trace trace(ranks);
    backward(Divided<T>(ring_of(trace.world()), p, layout), p.mask);
    const int next = (ranks.rank() + 1) % ranks.size();
    const Index blocks = p.k.tokens - tokens(p, layout, ranks.size(), next);
    const Index gradients = p.k.tokens - tokens(p, layout, ranks.size(), ranks.rank());
    const Traffic want = {3 * (ranks.size() - 1), 2 * block(p, blocks) * Index(sizeof(T)) +
                                                      block(p, gradients) * Index(sizeof(Accumulator<T>))};
    EXPECT_EQ(sent(trace), ranks.size() == 1 ? Traffic{} : want) << to_string(layout);
}

} // namespace

TEST(ring_trace, forward_sends_each_block_that_has_somewhere_to_go) {
    const ReferenceProblem p = problem({2, 22, 22, 8, 2, 8, 4}, Mask::everything()); // 22 over 3 and 4 is uneven
    on_every_world([&](const Communicator& ranks) {
        for (const SequenceLayout layout : layouts) {
            expect_forward<float>(p, ranks, layout);
            expect_forward<double>(p, ranks, layout);
        }
    });
}

TEST(ring_trace, backward_sends_the_blocks_again_and_their_gradients) {
    const ReferenceProblem p = problem({2, 22, 22, 8, 2, 8, 4}, Mask::everything());
    on_every_world([&](const Communicator& ranks) {
        for (const SequenceLayout layout : layouts) {
            expect_backward<float>(p, ranks, layout);
            expect_backward<double>(p, ranks, layout);
        }
    });
}

// Of contiguous parts the last rank's block is needed by nobody else, the first's by all; a block stops where it is
// last needed. Zigzag and striped parts are needed by all.
TEST(ring_trace, causal_blocks_go_no_further_than_they_are_needed) {
    const ReferenceProblem p = problem({1, 24, 24, 2, 1, 8, 8}, Mask::causal());
    on_every_world([&](const Communicator& ranks) {
        if (24 % (2 * ranks.size()) != 0)
            return;
        for (const SequenceLayout layout : layouts) {
            const Trace trace(ranks);
            Divided<float>(ring_of(trace.world()), p, layout).attend({p.mask});
            const bool ordered = layout == SequenceLayout::contiguous;
            const bool last = ranks.rank() == ranks.size() - 1;
            const Index blocks = !ordered ? ranks.size() - 1 : last ? 0 : ranks.rank() + 1;
            const Index bytes = blocks * block(p, 24 / ranks.size()) * Index(sizeof(float));
            EXPECT_EQ(sent(trace), (Traffic{blocks, bytes})) << to_string(layout);
        }
    });
}

TEST(ring_trace, groups_of_a_mesh_carry_their_own_share) {
    const ReferenceProblem p = problem({2, 16, 16, 4, 2, 8, 4}, Mask::everything());
    on_world(4, [&](const Communicator& ranks) {
        const Trace trace(ranks);
        const Mesh mesh(trace.world(), {{cp, 2}, {tp, 2}});
        Divided<float>(mesh, p, SequenceLayout::zigzag).attend({p.mask});
        const TraceSummary summary = trace.summary();
        const auto* const row = summary.find("send", "cp");
        ASSERT_NE(row, nullptr);
        EXPECT_EQ(row->ranks[std::size_t(ranks.rank())].bytes, block(p, 8) / 2 * Index(sizeof(float)));
        EXPECT_EQ(summary.find("send", "tp"), nullptr);
    });
}

} // namespace ring_trace_test
