#include "attention/ring_cases.hpp"

namespace ring_backward_test {

using namespace ring_cases;

template <class T>
class ring_gradients_of : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ring_gradients_of, Types);

struct Incoming {
    ReferenceTensor dout, dlse;
};

Incoming incoming(const ReferenceProblem& p) {
    return {random_tensor(p.q.batch, p.q.tokens, p.q.heads, p.v.dim, 4),
            random_tensor(p.q.batch, p.q.tokens, p.q.heads, 1, 5)};
}

template <class T>
struct Gradients {
    Matrix<T> dq, dk, dv;
};

template <class T>
Gradients<T> gradients(const Mesh& mesh, const Divided<T>& parts, const Incoming& in, const AttentionOptions& options,
                       bool with_dlse = true) {
    const auto forward = parts.attend(options);
    const auto dout = divided<T>(mesh, in.dout, parts.of_queries, forward.out.col_partition());
    const auto dlse = divided<T>(mesh, in.dlse, parts.of_queries, forward.lse.col_partition());
    Gradients<T> result = {Matrix<T>(parts.q.spec()), Matrix<T>(parts.k.spec()), Matrix<T>(parts.v.spec())};
    for (auto* matrix : {&result.dq, &result.dk, &result.dv})
        matrix->local().setConstant(T(7)); // to be overwritten
    const auto dq = heads(result.dq, parts.of_queries, parts.head_dim);
    const auto dk = heads(result.dk, parts.of_keys, parts.head_dim);
    const auto dv = heads(result.dv, parts.of_keys, parts.value_dim);
    std::optional<ShardedView<const T, tokens_and_heads>> dlse_view;
    if (with_dlse)
        dlse_view = dlse.view();
    ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), forward.out, forward.lse, dout, dq, dk,
                            dv, options, dlse_view);
    return result;
}

template <class T>
void expect_near(const Gradients<T>& got, const ReferenceGradients& want, const ReferenceProblem& p,
                 const std::string& what) {
    const double bound = 16 * score_bound(p) * std::sqrt(double(p.v.dim));
    const double sums = std::sqrt(double(p.q.tokens * p.q.heads / p.k.heads)) + 1; // dK and dV sum over queries
    ring_cases::expect_near(got.dq, want.dq, bound, what + ", dq");
    ring_cases::expect_near(got.dk, want.dk, bound * sums, what + ", dk");
    ring_cases::expect_near(got.dv, want.dv, bound * sums, what + ", dv");
}

/// On every world, in every layout, the parts of all ranks are those of the reference.
template <class T>
void expect_reference(const ReferenceProblem& p, const std::string& what) {
    const Incoming in = incoming(p);
    const ReferenceGradients want = reference_attention_backward(p, in.dout, in.dlse);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        for (const SequenceLayout layout : layouts)
            expect_near(gradients<T>(mesh, Divided<T>(mesh, p, layout), in, {p.mask}), want, p,
                        concat(what, ", ", to_string(layout), ", P ", world.size(), ", rank ", world.rank()));
    });
}

/// Of this rank's elements.
double product_sum(const Matrix<double>& a, const Matrix<double>& b) {
    double sum = 0;
    for (Index i = 0; i < a.local().size(); ++i)
        sum += a.data()[i] * b.data()[i];
    return sum;
}

double weighted_sum(const ReferenceTensor& weights, const ReferenceTensor& values) {
    double sum = 0;
    for (std::size_t i = 0; i < values.values.size(); ++i)
        sum += std::isinf(values.values[i]) ? 0 : weights.values[i] * values.values[i];
    return sum;
}

TYPED_TEST(ring_gradients_of, every_mask_and_layout_equal_the_reference) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(4), Mask::window(0), Mask::window(3, 2)})
        expect_reference<TypeParam>(problem({2, 23, 23, 4, 2, 8, 8}, mask), to_string(mask));
}

TYPED_TEST(ring_gradients_of, grouped_heads_and_odd_sizes_equal_the_reference) {
    for (const Shape& shape : {Shape{1, 17, 17, 3, 3, 5, 7},
                               {2, 12, 12, 4, 1, 8, 4},
                               {1, 7, 18, 2, 1, 8, 8},
                               {1, 18, 7, 2, 1, 8, 8},
                               {1, 3, 0, 2, 1, 8, 8},
                               {1, 0, 3, 2, 1, 8, 8}})
        for (const Mask& mask : {Mask::causal(), Mask::window(5, 1)})
            expect_reference<TypeParam>(problem(shape, mask), shape.text() + ", " + to_string(mask));
}

TYPED_TEST(ring_gradients_of, fewer_tokens_than_ranks_equal_the_reference) {
    for (const Index tokens : {1, 2, 3, 7})
        expect_reference<TypeParam>(problem({2, tokens, tokens, 2, 2, 8, 8}, Mask::causal()), concat("N ", tokens));
}

TYPED_TEST(ring_gradients_of, a_mesh_of_several_axes_equal_the_reference) {
    const std::vector<std::vector<MeshAxis>> meshes = {
        {{Axes::dp, 2}, {Axes::tp, 2}}, {{Axes::cp, 2}, {Axes::tp, 2}}, {{Axes::dp, 2}, {Axes::cp, 2}}};
    const ReferenceProblem p = problem({3, 13, 13, 4, 2, 8, 8}, Mask::causal());
    const Incoming in = incoming(p);
    const ReferenceGradients want = reference_attention_backward(p, in.dout, in.dlse);
    for (const auto& axes : meshes)
        on_mesh(axes, [&](const Mesh& mesh) {
            expect_near(gradients<TypeParam>(mesh, Divided<TypeParam>(mesh, p, SequenceLayout::zigzag), in, {p.mask}),
                        want, p, to_string(mesh.axes()));
        });
}

TYPED_TEST(ring_gradients_of, a_forward_whose_lse_nobody_uses_equal_the_reference) {
    const ReferenceProblem p = problem({1, 20, 20, 2, 1, 8, 8}, Mask::causal());
    const Incoming in = incoming(p);
    const ReferenceGradients want = reference_attention_backward(p, in.dout);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const Divided<TypeParam> parts(mesh, p, SequenceLayout::striped);
        expect_near(gradients<TypeParam>(mesh, parts, in, {p.mask}, false), want, p, "no dlse");
    });
}

// mindone PR#1438, diffusers#14265: a backward that ignores its incoming gradient, or keeps using its own keys.
TEST(ring_gradients, are_the_differences_of_the_forward_pass) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(2, 1)}) {
        const ReferenceProblem p = problem({1, 6, 6, 2, 1, 3, 2}, mask);
        const Incoming in = incoming(p);
        const auto objective = [&](const ReferenceProblem& at) {
            const ReferenceOutput output = reference_attention(at);
            return weighted_sum(in.dout, output.out) + weighted_sum(in.dlse, output.lse);
        };
        const auto differences = [&](ReferenceTensor ReferenceProblem::* which) {
            constexpr double step = 1e-5;
            ReferenceTensor result = p.*which;
            for (std::size_t i = 0; i < result.values.size(); ++i) {
                ReferenceProblem above = p, below = p;
                (above.*which).values[i] += step;
                (below.*which).values[i] -= step;
                result.values[i] = (objective(above) - objective(below)) / (2 * step);
            }
            return result;
        };
        const ReferenceGradients want = {differences(&ReferenceProblem::q), differences(&ReferenceProblem::k),
                                         differences(&ReferenceProblem::v)};
        on_every_world([&](const Communicator& world) {
            const Mesh mesh = ring_of(world);
            for (const SequenceLayout layout : layouts) {
                const auto got = gradients<double>(mesh, Divided<double>(mesh, p, layout), in, {mask});
                constexpr double bound = 1e-9 / std::numeric_limits<double>::epsilon();
                ring_cases::expect_near(got.dq, want.dq, bound, "dq");
                ring_cases::expect_near(got.dk, want.dk, bound, "dk");
                ring_cases::expect_near(got.dv, want.dv, bound, "dv");
            }
        });
    }
}

// out is linear in v: <dout, out(v)> = <dv, v> summed over all ranks, each counted once.
TEST(ring_gradients, of_values_are_the_adjoint_of_the_output) {
    const ReferenceProblem p = problem({2, 13, 13, 4, 2, 8, 8}, Mask::causal());
    const Incoming in = incoming(p);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const Divided<double> parts(mesh, p, SequenceLayout::zigzag);
        const auto out = parts.attend({p.mask}).out;
        const auto dout = divided<double>(mesh, in.dout, parts.of_queries, out.col_partition());
        const auto dv = gradients<double>(mesh, parts, in, {p.mask}, false).dv;
        std::vector<double> sums = {product_sum(dout, out), product_sum(dv, parts.v)};
        world.all_reduce(sums);
        EXPECT_NEAR(sums[0], sums[1], 1e-11);
    });
}

TYPED_TEST(ring_gradients_of, packed_projections_are_written_in_place) { // flash-attention#2611
    const ReferenceProblem p = problem({2, 15, 15, 4, 2, 8, 8}, Mask::causal());
    const Incoming in = incoming(p);
    const ReferenceGradients want = reference_attention_backward(p, in.dout);
    on_every_world([&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const Sequences s = {2, 15, SequenceLayout::zigzag};
        const NamedBlocks blocks = NamedBlocks::heads({4, 2}, 8);
        const Divided<TypeParam> parts(mesh, p, SequenceLayout::zigzag);
        const auto forward = parts.attend({p.mask});
        const auto dout = divided<TypeParam>(mesh, in.dout, s, forward.out.col_partition());
        Matrix<TypeParam> packed(mesh, s.rows(mesh, dp | cp), blocks.partition(1));
        packed.local().setConstant(TypeParam(7));
        const auto of = [&](const char* name) { return heads(block_view(packed, blocks, name), s, 8); };
        ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), forward.out, forward.lse, dout,
                                of("q"), of("k"), of("v"), {p.mask});
        Gradients<TypeParam> got = {Matrix<TypeParam>(parts.q.spec()), Matrix<TypeParam>(parts.k.spec()),
                                    Matrix<TypeParam>(parts.v.spec())};
        got.dq.local() = packed.local().middleCols(0, 32);
        got.dk.local() = packed.local().middleCols(32, 16);
        got.dv.local() = packed.local().middleCols(48, 16);
        expect_near(got, want, p, "packed");
    });
}

TYPED_TEST(ring_gradients_of, poisoned_memory_are_the_same_bits_ten_times) { // TransformerEngine#3331
    const ReferenceProblem p = problem({1, 150, 150, 1, 1, 8, 8}, Mask::causal());
    const Incoming in = incoming(p);
    on_world(4, [&](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        for (const SequenceLayout layout : layouts) {
            const Divided<TypeParam> parts(mesh, p, layout);
            const auto first = gradients<TypeParam>(mesh, parts, in, {p.mask});
            for (int run = 0; run < 10; ++run) {
                const int byte = run % 2 == 0 ? 0xff : 0x44; // NaN, and a number near 1e3
                memory_account()->fill_new_buffers(static_cast<unsigned char>(byte));
                const auto again = gradients<TypeParam>(mesh, parts, in, {p.mask});
                memory_account()->fill_new_buffers(std::nullopt);
                EXPECT_TRUE(same_bits(again.dq, first.dq) && same_bits(again.dk, first.dk) &&
                            same_bits(again.dv, first.dv));
            }
        }
    });
}

} // namespace ring_backward_test
