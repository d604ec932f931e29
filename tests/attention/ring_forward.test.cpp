#include "attention/ring_cases.hpp"

namespace ring_forward_test {

using namespace ring_cases;

template <class T>
class ring_attention_of : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ring_attention_of, Types);

std::vector<Mask> masks() {
    return {Mask::everything(), Mask::causal(),     Mask::window(4),
            Mask::window(0),    Mask::window(3, 2), {std::nullopt, 2}};
}

/// On every world, in every layout, the parts of all ranks are those of the reference.
template <class T>
void expect_reference(const ReferenceProblem& p, const std::string& what, Index stripe = 1) {
    const ReferenceOutput want = reference_attention(p);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        for (const SequenceLayout layout : layouts)
            expect_near(Divided<T>(mesh, p, layout, stripe).attend({p.mask}), want, p,
                        concat(what, ", ", to_string(layout), ", P ", world.size(), ", rank ", world.rank()));
    });
}

// pytorch#141429: balanced layouts without a mask
TYPED_TEST(ring_attention_of, every_mask_and_layout_equals_the_reference) {
    for (const Mask& mask : masks())
        expect_reference<TypeParam>(problem({2, 23, 23, 4, 2, 8, 8}, mask), to_string(mask));
}

TYPED_TEST(ring_attention_of, grouped_heads_and_odd_sizes_equals_the_reference) {
    for (const Shape& shape : {Shape{1, 17, 17, 3, 3, 5, 7}, {2, 12, 12, 4, 1, 8, 4}, {1, 41, 41, 6, 2, 16, 24}})
        for (const Mask& mask : {Mask::causal(), Mask::window(5, 1)})
            expect_reference<TypeParam>(problem(shape, mask), shape.text() + ", " + to_string(mask));
}

// flash-attention#1778, cutlass#2336; 4 queries at offset 12 of 16 keys are chunked prefill
TYPED_TEST(ring_attention_of, queries_and_keys_of_different_lengths_aligns_at_the_end) {
    for (const auto& [queries, keys] :
         {std::pair<Index, Index>{2, 5}, {5, 2}, {4, 16}, {16, 4}, {9, 20}, {3, 0}, {0, 3}})
        for (const Mask& mask : masks()) {
            const Shape shape = {1, queries, keys, 2, 1, 8, 8};
            expect_reference<TypeParam>(problem(shape, mask), shape.text() + ", " + to_string(mask));
        }
}

TYPED_TEST(ring_attention_of, fewer_tokens_than_ranks_equals_the_reference) { // pytorch#159706
    for (const Index tokens : {1, 2, 3, 5, 7})
        for (const Mask& mask : {Mask::causal(), Mask::everything()})
            expect_reference<TypeParam>(problem({2, tokens, tokens, 2, 2, 8, 8}, mask), concat("N ", tokens));
}

TYPED_TEST(ring_attention_of, stripes_of_several_tokens_equals_the_reference) {
    expect_reference<TypeParam>(problem({1, 29, 29, 2, 1, 8, 8}, Mask::causal()), "stripes of 3", 3);
}

TYPED_TEST(ring_attention_of, a_scale_of_ones_own_equals_the_reference) {
    for (const double scale : {0.8, -0.3, 0.0}) {
        ReferenceProblem p = problem({1, 14, 14, 2, 1, 8, 8}, Mask::causal());
        p.scale = scale;
        const ReferenceOutput want = reference_attention(p);
        on_every_world([&](const Communicator& world) {
            const Divided<TypeParam> parts(ring_of(world), p, SequenceLayout::zigzag);
            expect_near(parts.attend({p.mask, scale}), want, p, concat("scale ", scale));
        });
    }
}

TYPED_TEST(ring_attention_of, queries_in_another_layout_than_keys_equals_the_reference) {
    const ReferenceProblem p = problem({1, 19, 26, 2, 1, 8, 8}, Mask::causal());
    const ReferenceOutput want = reference_attention(p);
    on_every_world([&](const Communicator& world) {
        const Divided<TypeParam> parts(ring_of(world), p, sequences(p.q, SequenceLayout::zigzag),
                                       sequences(p.k, SequenceLayout::striped));
        expect_near(parts.attend({p.mask}), want, p, "zigzag queries, striped keys");
    });
}

TYPED_TEST(ring_attention_of, a_mesh_of_several_axes_equals_the_reference) {
    const std::vector<std::vector<MeshAxis>> meshes = {{{Axes::dp, 2}, {Axes::tp, 2}},
                                                       {{Axes::cp, 2}, {Axes::tp, 2}},
                                                       {{Axes::dp, 2}, {Axes::cp, 2}},
                                                       {{Axes::tp, 3}},
                                                       {{Axes::tp, 2}, {Axes::cp, 2}}};
    for (const auto& axes : meshes)
        for (const Shape& shape : {Shape{3, 13, 13, 4, 2, 8, 8}, {1, 10, 10, 4, 1, 8, 16}, {2, 9, 9, 2, 2, 8, 8}}) {
            const ReferenceProblem p = problem(shape, Mask::causal());
            const ReferenceOutput want = reference_attention(p);
            on_mesh(axes, [&](const Mesh& mesh) {
                for (const SequenceLayout layout : layouts)
                    expect_near(Divided<TypeParam>(mesh, p, layout).attend({p.mask}), want, p,
                                shape.text() + " on " + to_string(mesh.axes()));
            });
        }
}

TYPED_TEST(ring_attention_of, packed_queries_keys_and_values_equals_the_reference) { // flash-attention#2611
    const ReferenceProblem p = problem({2, 15, 15, 4, 2, 8, 8}, Mask::causal());
    const ReferenceOutput want = reference_attention(p);
    const auto packed = [&](Index row, Index column) {
        const Index b = row / 15, t = row % 15, h = column / 8, c = column % 8;
        return TypeParam(h < 4 ? p.q(b, t, h, c) : h < 6 ? p.k(b, t, h - 4, c) : p.v(b, t, h - 6, c));
    };
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const Sequences s = {2, 15, SequenceLayout::zigzag};
        const NamedBlocks blocks = NamedBlocks::heads({4, 2}, 8);
        const auto qkv = Matrix<TypeParam>::from_global(mesh, s.rows(mesh, dp | cp), blocks.partition(1), packed);
        const auto of = [&](const char* name) { return heads(block_view(qkv, blocks, name), s, 8); };
        expect_near(ring_attention(of("q"), of("k"), of("v"), {p.mask}), want, p, "packed");
    });
}

TYPED_TEST(ring_attention_of, one_rank_is_the_dense_kernel_bit_for_bit) {
    const ReferenceProblem p = problem({2, 55, 61, 4, 2, 8, 16}, Mask::causal());
    const Mesh alone;
    const Divided<TypeParam> parts(alone, p, SequenceLayout::zigzag);
    const auto got = parts.attend({p.mask});
    auto out = Matrix<TypeParam>::zeros(alone, got.out.rows(), got.out.cols());
    auto lse = Matrix<TypeParam>::zeros(alone, got.lse.rows(), got.lse.cols());
    AttentionState<TypeParam> state(parts.q_heads().view(), Runs::range(0, 55), 2, 16,
                                    {1 / std::sqrt(8.0), p.mask, 61 - 55});
    state.absorb(parts.k_heads().view(), parts.v_heads().view(), Runs::range(0, 61));
    state.finish(heads(out, parts.of_queries, 16).view(), lse.strided());
    EXPECT_TRUE(same_bits(got.out, out));
    EXPECT_TRUE(same_bits(got.lse, lse));
}

// Sequences of 698 tokens divide by neither 4 nor 8; lengths computed as len/P lose tokens (TransformerEngine#3331).
TYPED_TEST(ring_attention_of, poisoned_memory_is_the_same_bits_ten_times) {
    const ReferenceProblem p = problem({1, 698, 698, 1, 1, 8, 8}, Mask::causal());
    const ReferenceOutput want = reference_attention(p);
    on_world(4, [&](const Communicator& world) {
        for (const SequenceLayout layout : layouts) {
            const Divided<TypeParam> parts(ring_of(world), p, layout);
            const auto first = parts.attend({p.mask});
            expect_near(first, want, p, to_string(layout));
            for (int run = 0; run < 10; ++run) {
                const int byte = run % 2 == 0 ? 0xff : 0x44; // NaN, and a number near 1e3
                memory_account()->fill_new_buffers(static_cast<unsigned char>(byte));
                const auto again = parts.attend({p.mask});
                memory_account()->fill_new_buffers(std::nullopt);
                EXPECT_TRUE(same_bits(again.out, first.out));
                EXPECT_TRUE(same_bits(again.lse, first.lse));
            }
        }
    });
}

TYPED_TEST(ring_attention_of, large_logits_stays_finite) { // ring-flash-attention PR#30
    ReferenceProblem p = problem({1, 4, 4, 1, 1, 1, 1}, Mask::everything());
    p.q.values = {100, 100, 100, 100};
    p.k.values = {0, 0, 1, 1};
    on_world(2, [&](const Communicator& world) {
        const auto got = Divided<TypeParam>(ring_of(world), p, SequenceLayout::contiguous).attend({p.mask, 1.0});
        for (Index i = 0; i < 2; ++i) {
            EXPECT_EQ(got.out.local()(i, 0), TypeParam((p.v.values[2] + p.v.values[3]) / 2));
            EXPECT_NEAR(double(got.lse.local()(i, 0)), 100 + std::log(2.0),
                        200 * std::numeric_limits<TypeParam>::epsilon());
        }
    });
}

TYPED_TEST(ring_attention_of, a_window_of_one_is_the_value) { // transformers#39408
    const ReferenceProblem p = problem({2, 11, 11, 2, 2, 8, 8}, Mask::window(0));
    on_every_world([&](const Communicator& world) {
        for (const SequenceLayout layout : layouts) {
            const Divided<TypeParam> parts(ring_of(world), p, layout);
            EXPECT_TRUE(same_bits(parts.attend({p.mask}).out, parts.v));
        }
    });
}

TYPED_TEST(ring_attention_of, an_unbounded_window_is_causal_bit_for_bit) { // TransformerEngine#3528
    const ReferenceProblem p = problem({2, 11, 11, 2, 2, 8, 8}, Mask::causal());
    on_every_world([&](const Communicator& world) {
        const Divided<TypeParam> parts(ring_of(world), p, SequenceLayout::zigzag);
        EXPECT_TRUE(same_bits(parts.attend({Mask{std::nullopt, 0}}).out, parts.attend({Mask::causal()}).out));
    });
}

} // namespace ring_forward_test
