#include "nn/support.hpp"
#include "reference/activation.hpp"

#include <reigen/nn/gradients.hpp>
#include <reigen/nn/mlp.hpp>

namespace mlp_test {

using namespace layer_cases;
using namespace reigen;

namespace {

constexpr double tolerance = 1e-11;
const Initial normal = {.deviation = 1, .seed = 3};
const Sequences sequences{2, 5, SequenceLayout::zigzag};

/// An MLP in plain loops, with its gradients.
struct DenseMlp {
    Dense up, up_bias, down, down_bias;
    bool swiglu;

    Dense inner(const Dense& x) const { return times(x, up).rowwise() + up_bias.row(0); }

    Dense hidden(const Dense& inner) const {
        Dense h(inner.rows(), down.rows());
        for (Index i = 0; i < h.rows(); ++i)
            for (Index j = 0; j < h.cols(); ++j)
                h(i, j) = swiglu ? reference::silu(inner(i, j)) * inner(i, h.cols() + j) : reference::gelu(inner(i, j));
        return h;
    }

    Dense forward(const Dense& x) const { return times(hidden(inner(x)), down).rowwise() + down_bias.row(0); }

    Dense dinner(const Dense& x, const Dense& dy) const {
        const Dense in = inner(x), dh = times(dy, down.transpose());
        Dense d(in.rows(), in.cols());
        for (Index i = 0; i < dh.rows(); ++i)
            for (Index j = 0; j < dh.cols(); ++j)
                if (swiglu) {
                    d(i, j) = dh(i, j) * reference::silu_slope(in(i, j)) * in(i, dh.cols() + j);
                    d(i, dh.cols() + j) = dh(i, j) * reference::silu(in(i, j));
                } else {
                    d(i, j) = dh(i, j) * reference::gelu_slope(in(i, j));
                }
        return d;
    }
};

template <Placement Residual>
void expect_as_dense(const Mesh& mesh, MlpKind kind) {
    using Tokens = Sharded<double, Residual>;
    const Index width = 4, hidden = 5, inner = kind == MlpKind::swiglu ? 10 : 5;
    Mlp<double, Residual> mlp(mesh, "mlp", width, hidden, kind, normal, normal);
    const auto parameters = mlp.parameters();
    ASSERT_EQ(parameters.size(), 4U);
    const DenseMlp dense{waves(1, width, inner), waves(2, 1, inner), waves(3, hidden, width), waves(4, 1, width),
                         kind == MlpKind::swiglu};
    set_value(parameters[0], dense.up);
    set_value(parameters[1], dense.up_bias);
    set_value(parameters[2], dense.down);
    set_value(parameters[3], dense.down_bias);

    const Dense x = waves(5, 10, width), dy = waves(6, 10, width);
    const Partition rows = sequences.rows(mesh, Residual.rows);
    auto [y, saved] = mlp.forward(Tokens::from_global(mesh, rows, width, x));
    const auto dx = mlp.backward(std::move(saved), Tokens::from_global(mesh, rows, width, dy));
    synchronise_gradients<double>(parameters);

    const Dense dinner = dense.dinner(x, dy);
    expect_matches(y, dense.forward(x), tolerance, "y");
    expect_matches(dx, times(dinner, dense.up.transpose()), tolerance, "dx");
    expect_gradient(parameters[0], times(x.transpose(), dinner), tolerance);
    expect_gradient(parameters[1], times(Dense::Ones(1, 10), dinner), tolerance);
    expect_gradient(parameters[2], times(dense.hidden(dense.inner(x)).transpose(), dy), tolerance);
    expect_gradient(parameters[3], times(Dense::Ones(1, 10), dy), tolerance);
}

TEST(mlp, both_kinds_in_both_placements_are_the_dense_ones_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        for (const MlpKind kind : {MlpKind::gelu, MlpKind::swiglu}) {
            expect_as_dense<residual_on_every_rank>(mesh, kind);
            expect_as_dense<residual_over_tp>(mesh, kind);
        }
    });
}

// Each rank has gates and the ups that go with them, never all gates on the first.
// xllm#1616
TEST(mlp, xllm_1616_gate_and_up_are_split_within_each_half) {
    const auto expect = [](Index hidden, const std::string& inner_of_first, const std::string& hidden_of_first) {
        on_mesh({{tp, 2}}, [&](const Mesh& mesh) {
            Mlp<float, residual_on_every_rank> mlp(mesh, "mlp", 4, hidden, MlpKind::swiglu, normal, normal);
            EXPECT_EQ(mlp.parameters()[0].col_partition.runs(0).to_string(), inner_of_first);
            EXPECT_EQ(mlp.parameters()[2].row_partition.runs(0).to_string(), hidden_of_first);
        });
    };
    expect(2, "0 2", "0");
    expect(3, "0-1 3-4", "0-1");
}

TEST(mlp, keeps_its_input_and_what_the_activation_reads) {
    on_mesh({}, [](const Mesh& mesh) {
        Mlp<float, residual_on_every_rank> mlp(mesh, "mlp", 4, 16, MlpKind::swiglu, normal, normal);
        const Index before = memory_account()->of(MemoryUse::activations).current;
        auto [y, saved] = mlp.forward(Sharded<float, residual_on_every_rank>::zeros(mesh, 10, 4));
        const Index kept = memory_account()->of(MemoryUse::activations).current - before;
        EXPECT_EQ(kept, Index(sizeof(float)) * 10 * (4 + 2 * 16 + 4)); // x, gate|up, and the result
    });
}

} // namespace

} // namespace mlp_test
