#include "attention/ring_cases.hpp"

#include <algorithm>

namespace attention_test {

using namespace ring_cases;

namespace {

/// `queries` and as many keys of one number each, scale 1: every logit is q k.
ReferenceProblem one_number(std::vector<double> q, std::vector<double> k, std::vector<double> v) {
    ReferenceProblem p = problem({1, Index(q.size()), Index(k.size()), 1, 1, 1, 1}, Mask::everything());
    p.q.values = std::move(q);
    p.k.values = std::move(k);
    p.v.values = std::move(v);
    p.scale = 1;
    return p;
}

template <class T>
struct Results {
    Matrix<T> out, lse, dq, dk, dv;
};

/// Forward, and backward with random dout.
template <class T>
Results<T> both_passes(const Mesh& mesh, const ReferenceProblem& p, const ReferenceTensor& dout,
                       SequenceLayout layout) {
    const AttentionOptions options = {p.mask, p.scale};
    const Divided<T> parts(mesh, p, layout);
    auto [out, lse] = parts.attend(options);
    const auto incoming = divided<T>(mesh, dout, parts.of_queries, out.col_partition());
    Results<T> result = {std::move(out), std::move(lse), Matrix<T>(parts.q.spec()), Matrix<T>(parts.k.spec()),
                         Matrix<T>(parts.v.spec())};
    ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), result.out, result.lse, incoming,
                            heads(result.dq, parts.of_queries, p.q.dim), heads(result.dk, parts.of_keys, p.q.dim),
                            heads(result.dv, parts.of_keys, p.v.dim), options);
    return result;
}

/// On every world and in every layout. Weights err by the rounding of the largest logit, the gradients of queries and
/// keys by that of what multiplies the weights.
template <class T>
void expect_reference(const ReferenceProblem& p, double largest_logit, const std::string& what) {
    const double bound = 4 * largest_logit;
    const auto largest = [](const ReferenceTensor& x) {
        double result = 1;
        for (const double value : x.values)
            result = std::max(result, std::abs(value));
        return result;
    };
    const ReferenceTensor dout = random_tensor(p.q.batch, p.q.tokens, p.q.heads, p.v.dim, 4);
    const ReferenceOutput want = reference_attention(p);
    const ReferenceGradients gradients = reference_attention_backward(p, dout);
    on_every_world([&](const Communicator& world) {
        for (const SequenceLayout layout : layouts) {
            const auto got = both_passes<T>(ring_of(world), p, dout, layout);
            expect_near(got.out, want.out, bound, what + ", out");
            expect_near(got.lse, want.lse, bound, what + ", lse");
            expect_near(got.dq, gradients.dq, bound * largest(p.k), what + ", dq");
            expect_near(got.dk, gradients.dk, bound * largest(p.q), what + ", dk");
            expect_near(got.dv, gradients.dv, bound, what + ", dv");
        }
    });
}

} // namespace

// ring-flash-attention PR#30: exponents of large logits overflowed where the parts of ranks are merged.
TEST(faults, ring_flash_attention_30_large_logits_stay_finite_forwards_and_backwards) {
    expect_reference<float>(one_number({100, 100, 100, 100}, {0, 0, 1, 1}, {1, 2, 4, 8}), 100, "logits to 100");
    expect_reference<double>(one_number({800, 800, -800, 800}, {1, 1, 1, 1}, {1, 2, 4, 8}), 800, "logits of 800");
    expect_reference<double>(one_number({-800, 800, 700, 0}, {1, -1, 1, 0.5}, {1, 2, 4, 8}), 800, "of both signs");
}

// flashinfer#4267: a finite "minus infinity" took real logits for masked ones.
TEST(faults, flashinfer_4267_equal_logits_of_minus_a_million_are_equal_weights) {
    const ReferenceProblem p = one_number({1, 1, 1, 1, 1}, {-1e6, -1e6, -1e6, -1e6}, {1, 2, 3, 6});
    on_every_world([&](const Communicator& world) {
        for (const SequenceLayout layout : layouts) {
            const auto [out, lse] = Divided<float>(ring_of(world), p, layout).attend({p.mask, 1.0});
            for (Index i = 0; i < out.local().rows(); ++i) {
                EXPECT_EQ(out.local()(i, 0), 3);
                EXPECT_NEAR(double(lse.local()(i, 0)), -1e6 + std::log(4), 0.1);
            }
        }
    });
}

// sglang PR#35045: lse in base two. Of one key it is the logit, whichever rank has it.
TEST(faults, sglang_35045_lse_of_one_key_is_its_logit) {
    const ReferenceProblem p = one_number({0.5, -3, 2, 7, 1}, {3}, {4});
    on_every_world([&](const Communicator& world) {
        for (const SequenceLayout layout : layouts) {
            const auto [out, lse] = Divided<double>(ring_of(world), p, layout).attend({p.mask, 1.0});
            for (Index i = 0; i < out.local().rows(); ++i) {
                EXPECT_EQ(out.local()(i, 0), 4);
                EXPECT_NEAR(lse.local()(i, 0), 3 * p.q.values[std::size_t(lse.row_runs()[i])], 1e-14);
            }
        }
    });
}

// flashinfer#4051, flash-attention PR#978: blocks without a key merged to NaN, or to other bits than without them.
TEST(faults, flashinfer_4051_blocks_without_keys_change_no_bit) {
    for (const Index keys : {1, 0}) {
        const ReferenceProblem p = problem({2, 9, keys, 2, 1, 8, 8}, Mask::everything());
        const Mesh alone;
        const auto want = Divided<float>(alone, p, SequenceLayout::contiguous).attend({p.mask});
        on_every_world([&](const Communicator& world) {
            for (const SequenceLayout layout : layouts) {
                const auto got = Divided<float>(ring_of(world), p, layout).attend({p.mask});
                for (Index i = 0; i < got.out.local().rows(); ++i) {
                    EXPECT_EQ(got.out.local().row(i), want.out.local().row(got.out.row_runs()[i]));
                    EXPECT_EQ(got.lse.local().row(i), want.lse.local().row(got.lse.row_runs()[i]));
                    if (keys == 0) {
                        EXPECT_EQ(got.lse.local()(i, 1), -std::numeric_limits<float>::infinity());
                    }
                }
            }
        });
    }
}

// flash-attention#2611: gradients and keys that are columns of a packed matrix, read with the wrong stride.
TEST(faults, flash_attention_2611_packed_views_give_the_bits_of_matrices_of_their_own) {
    const ReferenceProblem p = problem({2, 11, 11, 4, 2, 8, 8}, Mask::causal());
    const ReferenceTensor dout = random_tensor(2, 11, 4, 8, 4);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const NamedBlocks blocks = {{"q", 32}, {"k", 16}, {"v", 16}, {"out", 32}, {"dout", 32}, {"lse", 4}};
        for (const SequenceLayout layout : layouts) {
            const Divided<float> parts(mesh, p, layout);
            const auto want = both_passes<float>(mesh, p, dout, layout);
            const auto incoming = divided<float>(mesh, dout, parts.of_queries, want.out.col_partition());
            Matrix<float> packed(mesh, parts.q.row_partition(), blocks.partition(1));
            packed.local() << parts.q.local(), parts.k.local(), parts.v.local(), want.out.local(), incoming.local(),
                want.lse.local();
            const auto of = [&](const char* name) { return block_view(std::as_const(packed), blocks, name); };
            const auto head = [&](const char* name) { return heads(of(name), parts.of_queries, 8); };
            EXPECT_TRUE(same_bits(ring_attention(head("q"), head("k"), head("v"), {p.mask}).out, want.out));
            Matrix<float> dq(parts.q.spec()), dk(parts.k.spec()), dv(parts.v.spec());
            ring_attention_backward(head("q"), head("k"), head("v"), of("out"), of("lse"), of("dout"),
                                    heads(dq, parts.of_queries, 8), heads(dk, parts.of_keys, 8),
                                    heads(dv, parts.of_keys, 8), {p.mask});
            EXPECT_TRUE(same_bits(dq, want.dq) && same_bits(dk, want.dk) && same_bits(dv, want.dv));
        }
    });
}

// torchtitan#1283: backward too sends each block with its own key heads, and one sum of its gradients after it.
TEST(faults, torchtitan_1283_backward_sends_keys_and_gradients_of_key_heads_only) {
    const ReferenceProblem p = problem({2, 21, 21, 8, 2, 8, 4}, Mask::everything());
    const ReferenceTensor dout = random_tensor(2, 21, 8, 4, 4);
    on_every_world([&](const Communicator& world) {
        const int ranks = world.size();
        for (const SequenceLayout layout : layouts) {
            const Divided<float> parts(ring_of(world), p, layout);
            const auto forward = parts.attend({p.mask});
            const auto incoming = divided<float>(ring_of(world), dout, parts.of_queries, forward.out.col_partition());
            Matrix<float> dq(parts.q.spec()), dk(parts.k.spec()), dv(parts.v.spec());
            const Traffic before = world.traffic();
            ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), forward.out, forward.lse,
                                    incoming, heads(dq, parts.of_queries, 8), heads(dk, parts.of_keys, 8),
                                    heads(dv, parts.of_keys, 4), {p.mask});
            const auto held = [&](int rank) { return parts.of_keys.positions(ranks, rank).size(); };
            const Index keys = 21 - held((world.rank() + 1) % ranks); // whose block has come all the way
            const Index gradients = 21 - held(world.rank());          // one message for each block of another
            const Index element = 2 * 2 * (8 + 4) * Index(sizeof(float));
            EXPECT_EQ((world.traffic() - before).bytes, ranks == 1 ? 0 : (keys + gradients) * element);
        }
    });
}

} // namespace attention_test
