#include "attention/ring_cases.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/core/memory.hpp>

namespace ring_in_place_test {

using namespace ring_cases;

// Blocks so long that ranks read them where they lie, against the same over messages.

namespace {

constexpr Index share = 64, head_dim = 64, value_dim = 32;
constexpr Index block = share * 2 * (head_dim + value_dim); // elements

struct Seen {
    Matrix<float> out, lse, dq, dk, dv;
    Traffic sent;
    Index held; // bytes of keys and values, at most
};

Seen run(const Communicator& world, const ReferenceProblem& p, SequenceLayout layout) {
    const Divided<float> parts(ring_of(world), p, layout);
    memory_account()->reset_peaks();
    const Index before_held = memory_account()->of(MemoryUse::keys_values).current;
    const Traffic before = world.traffic();
    const AttentionOptions options = {.mask = p.mask};
    auto [out, lse] = parts.attend(options);
    Seen seen = {std::move(out), std::move(lse), parts.q.clone(), parts.k.clone(), parts.v.clone(), {}, 0};
    ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), seen.out, seen.lse, seen.out,
                            heads(seen.dq, parts.of_queries, head_dim), heads(seen.dk, parts.of_keys, head_dim),
                            heads(seen.dv, parts.of_keys, value_dim), options);
    seen.sent = world.traffic() - before;
    seen.held = memory_account()->of(MemoryUse::keys_values).peak - before_held;
    return seen;
}

void expect_bits(const Matrix<float>& got, const Matrix<float>& want, const char* what) {
    EXPECT_TRUE((got.local().array() == want.local().array()).all()) << what;
}

} // namespace

TEST(ring_in_place, has_the_bits_and_the_traffic_of_messages_and_holds_one_block) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(40)})
        on_every_world([&](const Communicator& world) {
            const Index tokens = share * world.size();
            const ReferenceProblem p = problem({1, tokens, tokens, 4, 2, head_dim, value_dim}, mask);
            for (const SequenceLayout layout : layouts) {
                const Seen in_place = run(world, p, layout);
                const Seen by_messages = run(faulty(world, {}), p, layout);
                expect_bits(in_place.out, by_messages.out, "out");
                expect_bits(in_place.lse, by_messages.lse, "lse");
                expect_bits(in_place.dq, by_messages.dq, "dq");
                expect_bits(in_place.dk, by_messages.dk, "dk");
                expect_bits(in_place.dv, by_messages.dv, "dv");
                EXPECT_EQ(in_place.sent, by_messages.sent);
                const bool reads = world.backend()->reads_in_place();
                if (reads && mask == Mask::everything()) {
                    EXPECT_EQ(in_place.held, block * Index(sizeof(float)));
                    EXPECT_EQ(by_messages.held, 2 * in_place.held);
                }
            }
        });
}

} // namespace ring_in_place_test
