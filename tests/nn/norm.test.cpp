#include "reference/norm.hpp"
#include "nn/support.hpp"

#include <reigen/nn/gradients.hpp>
#include <reigen/nn/norm.hpp>

namespace norm_test {

using namespace layer_cases;
using namespace reigen;

namespace {

constexpr Index width = 6;
constexpr double tolerance = 1e-13;

template <Placement Residual>
void expect_as_dense(const Mesh& mesh, NormKind kind) {
    using Tokens = Sharded<double, Residual>;
    const Sequences sequences{2, 5, SequenceLayout::striped};
    const Partition rows = sequences.rows(mesh, Residual.rows);
    const Dense x = waves(1, 10, width), dy = waves(2, 10, width), dx = waves(3, 10, width);
    const Dense scale = waves(4, 1, width), shift = waves(5, 1, width);
    Norm<double, Residual> norm(mesh, "norm", width, kind, 1e-4);
    const bool centred = kind == NormKind::layer_norm;
    set_value(norm.parameters()[0], scale);
    if (centred)
        set_value(norm.parameters()[1], shift);

    auto [y, saved] = norm.forward(Tokens::from_global(mesh, rows, width, x));
    auto gradient = Tokens::from_global(mesh, rows, width, dx);
    norm.backward_add(std::move(saved), Tokens::from_global(mesh, rows, width, dy), gradient);
    const auto parameters = norm.parameters();
    synchronise_gradients<double>(parameters);

    const auto want = reference::norm_forward(x, scale, centred ? &shift : nullptr, 1e-4);
    Dense dscale = Dense::Zero(1, width), dshift = dscale;
    const Dense want_dx = reference::norm_backward(want, scale, dy, dscale, centred ? &dshift : nullptr);
    expect_matches(y, want.y, tolerance, "y");
    expect_matches(gradient, dx + want_dx, tolerance, "dx");
    ASSERT_EQ(parameters.size(), centred ? 2U : 1U);
    expect_gradient(parameters[0], dscale, 10 * tolerance);
    if (centred)
        expect_gradient(parameters[1], dshift, 10 * tolerance);
}

TEST(norm_layer, both_kinds_in_both_placements_are_the_dense_ones_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        for (const NormKind kind : {NormKind::layer_norm, NormKind::rms_norm}) {
            expect_as_dense<residual_on_every_rank>(mesh, kind);
            expect_as_dense<residual_over_tp>(mesh, kind);
        }
    });
}

TEST(norm_layer, starts_with_scale_one_and_shift_zero) {
    on_mesh({}, [](const Mesh& mesh) {
        Norm<float, residual_on_every_rank> norm(mesh, "norm", 3, NormKind::layer_norm);
        for (Index j = 0; j < 3; ++j) {
            EXPECT_EQ(norm.parameters()[0].value(0, j), 1);
            EXPECT_EQ(norm.parameters()[1].value(0, j), 0);
        }
    });
}

// Megatron#1446, gpt-neox#1257: per-token gradients of the scale are 1, 2, ..., of which a rank of tp sees only those of its tokens.
TEST(norm_layer, Megatron_1446_gradients_under_sequence_parallelism_are_summed_over_tp) {
    for (const int ranks : {1, 2, 3})
        on_mesh({{tp, ranks}}, [](const Mesh& mesh) {
            using Tokens = Sharded<double, residual_over_tp>;
            Norm<double, residual_over_tp> norm(mesh, "norm", 1, NormKind::rms_norm, 0);
            auto [y, saved] = norm.forward(Tokens::from_global(mesh, 4, 1, [](Index, Index) { return 2; }));
            (void)norm.backward(std::move(saved),
                                Tokens::from_global(mesh, 4, 1, [](Index i, Index) { return i + 1; }));
            const auto parameters = norm.parameters();
            synchronise_gradients<double>(parameters);
            EXPECT_EQ(parameters[0].gradient(0, 0), 10);
        });
}

TEST(norm_layer, another_width_is_refused) {
    on_mesh({}, [](const Mesh& mesh) {
        Norm<float, residual_on_every_rank> norm(mesh, "norm", 3, NormKind::layer_norm);
        EXPECT_THROW((void)norm.forward(Sharded<float, residual_on_every_rank>::zeros(mesh, 2, 4)), ShapeError);
    });
}

} // namespace

} // namespace norm_test
