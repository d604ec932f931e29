#include "attention/ring_cases.hpp"

#include <cmath>

namespace ring_bfloat16_test {

using namespace ring_cases;

// Attention of bfloat16 over a ring is that in float of the same numbers, its results rounded once, whatever the number
// of ranks: exactly, where bfloat16 is widened. Where it is multiplied in pairs, weights are rounded too: the kernel's tests
// bound each element then, here the root mean square will do.

/// The same numbers in float.
Matrix<float> widened(const Matrix<bfloat16>& from) {
    Matrix<float> result(from.spec());
    result.local() = from.local().template cast<float>();
    return result;
}

Divided<float> widened(const Mesh& mesh, const ReferenceProblem& p, SequenceLayout layout,
                       const Divided<bfloat16>& from) {
    Divided<float> result(mesh, p, layout);
    result.q = widened(from.q);
    result.k = widened(from.k);
    result.v = widened(from.v);
    return result;
}

void expect_rounded(const Matrix<bfloat16>& got, const Matrix<float>& want, const std::string& what) {
    if (reigen::detail::multiplies_pairs) {
        const auto exact = want.local().cast<double>();
        const double difference = (got.local().cast<float>().cast<double>() - exact).norm();
        EXPECT_LE(difference, exact.norm() / 128 + 1e-6 * std::sqrt(double(want.local().size()))) << what;
        return;
    }
    for (Index i = 0; i < got.local().size(); ++i)
        EXPECT_EQ(float(got.data()[i]), float(bfloat16(want.data()[i]))) << what << ", element " << i;
}

/// Pairs meet the scale after the product, not before.
void expect_same_lse(const Matrix<float>& got, const Matrix<float>& want, const std::string& what) {
    for (Index i = 0; i < got.local().size(); ++i)
        if (reigen::detail::multiplies_pairs && std::isfinite(want.data()[i])) {
            EXPECT_NEAR(got.data()[i], want.data()[i], 1e-5) << what << ", lse " << i;
        } else {
            EXPECT_EQ(got.data()[i], want.data()[i]) << what << ", lse " << i;
        }
}

/// Where the gradients of queries, keys and values go.
template <class S>
struct Gradients {
    Matrix<S> dq, dk, dv;

    explicit Gradients(const Divided<S>& of) : dq(of.q.spec()), dk(of.k.spec()), dv(of.v.spec()) {
        for (auto* matrix : {&dq, &dk, &dv})
            matrix->local().setConstant(S(7)); // to be overwritten
    }
};

template <class S>
Gradients<S> differentiate(const Divided<S>& parts, const Matrix<S>& out, const Matrix<float>& lse,
                           const Matrix<S>& dout, const Mask& mask) {
    Gradients<S> result(parts);
    ring_attention_backward(parts.q_heads(), parts.k_heads(), parts.v_heads(), out, lse, dout,
                            heads(result.dq, parts.of_queries, parts.head_dim),
                            heads(result.dk, parts.of_keys, parts.head_dim),
                            heads(result.dv, parts.of_keys, parts.value_dim), {mask});
    return result;
}

TEST(ring_bfloat16, forward_and_backward_are_those_of_float_rounded) {
    for (const Mask& mask : {Mask::everything(), Mask::causal(), Mask::window(4), Mask::window(3, 2)}) {
        const ReferenceProblem p = problem({2, 23, 29, 4, 2, 8, 16}, mask);
        const ReferenceTensor incoming = random_tensor(2, 23, 4, 16, 4);
        on_every_world([&](const Communicator& world) {
            const Mesh mesh = ring_of(world);
            for (const SequenceLayout layout : layouts) {
                const Divided<bfloat16> parts(mesh, p, layout);
                const Divided<float> wide = widened(mesh, p, layout, parts);
                const auto got = parts.attend({mask});
                const auto want = wide.attend({mask});
                const std::string what = concat(to_string(mask), ", ", to_string(layout), ", P ", world.size());
                expect_rounded(got.out, want.out, what + ", out");
                expect_same_lse(got.lse, want.lse, what);

                const auto dout = divided<bfloat16>(mesh, incoming, parts.of_queries, got.out.col_partition());
                const auto gradients = differentiate(parts, got.out, got.lse, dout, mask);
                const auto exact = differentiate(wide, widened(got.out), got.lse, widened(dout), mask);
                expect_rounded(gradients.dq, exact.dq, what + ", dq");
                expect_rounded(gradients.dk, exact.dk, what + ", dk");
                expect_rounded(gradients.dv, exact.dv, what + ", dv");
            }
        });
    }
}

} // namespace ring_bfloat16_test
