#include "attention/ring_cases.hpp"

namespace ring_costs_test {

using namespace ring_cases;

namespace {

/// Bytes of the blocks that leave a rank, from who needs what: block j passes rank r if somebody beyond r needs it.
Index bytes_sent(const ReferenceProblem& p, SequenceLayout layout, int ranks, int rank) {
    const auto positions = [&](const ReferenceTensor& x, int r) { return sequences(x, layout).positions(ranks, r); };
    const RingRoute route(ranks, [&](int r, int block) {
        return may_see(p.mask, positions(p.q, r), p.k.tokens - p.q.tokens, positions(p.k, block));
    });
    Index elements = 0;
    for (const Turn turn : both_turns)
        for (int step = 0; step < ranks; ++step) {
            const int block = route.block_at(turn, rank, step);
            if (route.steps(turn, block) > step)
                elements += p.k.batch * positions(p.k, block).size() * p.k.heads * (p.k.dim + p.v.dim);
        }
    return elements * Index(sizeof(float));
}

} // namespace

// torchtitan#1283: a block travels with its key heads, B S_j Hkv (d + dv) elements, not with those of the queries.
TEST(ring_costs, bytes_are_those_of_the_keys_and_values_that_others_need) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(3), Mask::window(2, 4)}) {
        const ReferenceProblem p = problem({2, 21, 21, 8, 2, 8, 4}, mask);
        on_every_world([&](const Communicator& world) {
            for (const SequenceLayout layout : layouts) {
                const Divided<float> parts(ring_of(world), p, layout);
                const Traffic before = world.traffic();
                parts.attend({mask});
                EXPECT_EQ((world.traffic() - before).bytes, bytes_sent(p, layout, world.size(), world.rank()));
            }
        });
    }
}

TEST(ring_costs, without_a_mask_every_rank_sends_all_blocks_but_its_next_ones) {
    const ReferenceProblem p = problem({2, 20, 20, 8, 2, 8, 4}, Mask::everything());
    on_every_world([&](const Communicator& world) {
        const Divided<float> parts(ring_of(world), p, SequenceLayout::zigzag);
        const Traffic before = world.traffic();
        parts.attend({p.mask});
        const Index next = (world.rank() + 1) % world.size(); // its block has come all the way
        const Index tokens =
            20 - Index(sequences(p.k, SequenceLayout::zigzag).positions(world.size(), int(next)).size());
        EXPECT_EQ((world.traffic() - before).bytes, 2 * tokens * 2 * (8 + 4) * Index(sizeof(float)));
        EXPECT_EQ((world.traffic() - before).messages, world.size() - 1);
    });
}

TEST(ring_costs, one_rank_sends_nothing) {
    const ReferenceProblem p = problem({1, 9, 9, 2, 1, 8, 8}, Mask::causal());
    on_world(1, [&](const Communicator& world) {
        const Divided<float> parts(ring_of(world), p, SequenceLayout::zigzag);
        const auto got = parts.attend({p.mask});
        auto dq = parts.q.clone(), dk = parts.k.clone(), dv = parts.v.clone();
        ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), got.out, got.lse, got.out,
                                heads(dq, parts.of_queries, 8), heads(dk, parts.of_keys, 8),
                                heads(dv, parts.of_keys, 8), {p.mask});
        EXPECT_EQ(world.traffic(), Traffic{});
    });
}

// TransformerEngine PR#1208: shares of one size, so what a rank holds is the same on 2, 3, 4 and 5 ranks.
TEST(ring_costs, keys_and_values_held_are_two_blocks_whatever_the_number_of_ranks) {
    on_every_world([](const Communicator& world) {
        constexpr Index share = 12;
        const Shape shape = {2, share * world.size(), share * world.size(), 4, 2, 8, 4};
        const ReferenceProblem p = problem(shape, Mask::everything());
        constexpr Index block = 2 * share * 2 * (8 + 4) * Index(sizeof(float));
        for (const SequenceLayout layout : layouts) {
            const Divided<float> parts(ring_of(world), p, layout);
            const auto forward = parts.attend({p.mask});
            auto dq = parts.q.clone(), dk = parts.k.clone(), dv = parts.v.clone();
            const auto peak = [&](auto run) {
                memory_account()->reset_peaks();
                const Index held = memory_account()->of(MemoryUse::keys_values).current;
                run();
                return memory_account()->of(MemoryUse::keys_values).peak - held;
            };
            const Index want = world.size() == 1 ? 0 : 2 * block;
            EXPECT_EQ(peak([&] { parts.attend({p.mask}); }), want);
            EXPECT_EQ(peak([&] {
                          ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), forward.out,
                                                  forward.lse, forward.out, heads(dq, parts.of_queries, 8),
                                                  heads(dk, parts.of_keys, 8), heads(dv, parts.of_keys, 4), {p.mask});
                      }),
                      want);
            EXPECT_LE(memory_account()->of(MemoryUse::messages).peak, 4 * block);
        }
    });
}

TEST(ring_costs, nothing_is_allocated_between_hops) {
    on_every_world([](const Communicator& world) {
        const Index blocks = world.size() == 1 ? 0 : 2;
        EXPECT_EQ(allocations_of_attention(world), 5 + blocks); // out, lse, three of the state; two blocks
    });
}

} // namespace ring_costs_test
