// Every layer's backward pass against differences of its forward pass, and linear layers by the adjoint identity.

#include "nn/differences.hpp"

#include <reigen/layout/blocks.hpp>
#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/embedding.hpp>
#include <reigen/nn/linear.hpp>
#include <reigen/nn/mlp.hpp>
#include <reigen/nn/norm.hpp>

namespace differences_test {

using namespace layer_cases;
using namespace reigen;

namespace {

const Initial normal = {.deviation = 1, .seed = 3};
const Sequences sequences{2, 3, SequenceLayout::zigzag};

template <class X>
X tokens(const Mesh& mesh, const Extent& features, int which) {
    return X::from_global(mesh, sequences.rows(mesh, X::placement.rows), features,
                          [&](Index i, Index j) { return wave(which, i, j); });
}

/// Differences of <dy, layer(x)> with respect to x and all parameters.
template <class X, class Layer>
void expect_differences(Layer& layer, const Mesh& mesh, const Extent& in) {
    X x = tokens<X>(mesh, in, 1);
    auto [y, saved] = layer.forward(x.clone());
    auto dy = tokens<decltype(y)>(mesh, y.col_partition(), 2);
    X dx = layer.backward(std::move(saved), dy);
    const auto parameters = layer.parameters();
    synchronise_gradients<double>(parameters);
    const auto number = [&] { return inner_product(layer.forward(x.clone()).y, dy); };
    expect_difference_quotients(parameters, number);
    expect_difference_quotients(x.spec(), x.strided(), dx.strided(), number, "x");
}

template <Placement Residual>
void expect_differences_of_linear_layers(const Mesh& mesh) {
    using Tokens = Sharded<double, Residual>;
    ColumnParallelLinear<double, Residual> column(mesh, "column", 3, 5, normal);
    expect_differences<Tokens>(column, mesh, 3);
    RowParallelLinear<double, Residual> row(mesh, "row", 5, 3, normal);
    expect_differences<Sharded<double, features_over_tp>>(row, mesh, 5);
    VocabParallelHead<double, Residual> head(mesh, "head", 5, 3, normal);
    expect_differences<Tokens>(head, mesh, 3);
}

template <Placement Residual>
void expect_differences_of_norms_and_mlps(const Mesh& mesh) {
    using Tokens = Sharded<double, Residual>;
    for (const NormKind kind : {NormKind::layer_norm, NormKind::rms_norm}) {
        Norm<double, Residual> norm(mesh, "norm", 4, kind);
        expect_differences<Tokens>(norm, mesh, 4);
    }
    for (const MlpKind kind : {MlpKind::gelu, MlpKind::swiglu}) {
        Mlp<double, Residual> mlp(mesh, "mlp", 2, 3, kind, normal, normal);
        expect_differences<Tokens>(mlp, mesh, 2);
    }
}

TEST(differences, linear_layers) {
    on_few_meshes([](const Mesh& mesh) {
        expect_differences_of_linear_layers<residual_on_every_rank>(mesh);
        expect_differences_of_linear_layers<residual_over_tp>(mesh);
    });
}

TEST(differences, norms_and_mlps) {
    on_few_meshes([](const Mesh& mesh) {
        expect_differences_of_norms_and_mlps<residual_on_every_rank>(mesh);
        expect_differences_of_norms_and_mlps<residual_over_tp>(mesh);
    });
}

TEST(differences, linear_layer_with_shared_columns) {
    on_few_meshes([](const Mesh& mesh) {
        const Partition columns = NamedBlocks::heads({2, 1}, 1).partition(mesh.size(tp));
        ColumnParallelLinear<double, residual_on_every_rank> column(mesh, "column", 2, columns, normal);
        Sharded<double, residual_on_every_rank> x = tokens<decltype(x)>(mesh, 2, 1);
        auto [y, saved] = column.forward(x.clone());
        auto dy = tokens<decltype(y)>(mesh, columns, 2);
        const auto dx = column.backward(std::move(saved), dy);
        // Every copy of a column counts: the sum over all that all ranks hold, not over each element once.
        const auto number = [&] { return inner_product(column.forward(x.clone()).y, dy); };
        synchronise_gradients<double>(column.parameters());
        expect_difference_quotients(column.parameters(), number);
        expect_difference_quotients(x.spec(), x.strided(), dx.strided(), number, "x");
    });
}

template <Placement Residual>
void expect_differences_of_embedding(const Mesh& mesh) {
    VocabParallelEmbedding<double, Residual> embedding(mesh, "embedding", 5, 2, normal);
    const Pass pass{.sequences = sequences};
    const auto ids = at_rows({4, 0, 3, 0, 1, 4}, sequences.rows(mesh, token_axes).runs(mesh.rank(token_axes)));
    auto [y, saved] = embedding.forward(ids, pass);
    const auto dy = tokens<Sharded<double, Residual>>(mesh, 2, 2);
    embedding.backward(std::move(saved), dy);
    synchronise_gradients<double>(embedding.parameters());
    expect_difference_quotients(embedding.parameters(),
                                [&] { return inner_product(embedding.forward(ids, pass).y, dy); });
}

TEST(differences, embedding) {
    on_few_meshes([](const Mesh& mesh) {
        expect_differences_of_embedding<residual_on_every_rank>(mesh);
        expect_differences_of_embedding<residual_over_tp>(mesh);
    });
}

TEST(differences, cross_entropy) {
    on_few_meshes([](const Mesh& mesh) {
        const VocabParallelCrossEntropy<double> loss({.smoothing = 0.1});
        const auto labels =
            at_rows({4, 0, -100, 0, 1, 4}, sequences.rows(mesh, token_axes).runs(mesh.rank(token_axes)));
        auto logits = tokens<Sharded<double, features_over_tp>>(mesh, 5, 1);
        auto [mean, saved] = loss.forward(logits.clone(), labels);
        const auto gradient = loss.backward(std::move(saved), 3);
        expect_difference_quotients(
            logits.spec(), logits.strided(), gradient.strided(),
            [&] { return 3 * loss.forward(logits.clone(), labels).y; }, "logits");
    });
}

/// <A x, y> == <x, A* y> for a layer without bias.
template <class X, class Layer>
void expect_adjoint(Layer& layer, const Mesh& mesh, const Extent& in) {
    const X x = tokens<X>(mesh, in, 1);
    auto [ax, saved] = layer.forward(x.clone());
    const auto y = tokens<decltype(ax)>(mesh, ax.col_partition(), 2);
    const double left = inner_product(ax, y);
    EXPECT_NEAR(left, inner_product(x, layer.backward(std::move(saved), y)), 1e-12 * (1 + std::abs(left)));
}

template <Placement Residual>
void expect_adjoints(const Mesh& mesh) {
    using Tokens = Sharded<double, Residual>;
    ColumnParallelLinear<double, Residual> column(mesh, "column", 3, 5, normal, false);
    expect_adjoint<Tokens>(column, mesh, 3);
    RowParallelLinear<double, Residual> row(mesh, "row", 5, 3, normal, false);
    expect_adjoint<Sharded<double, features_over_tp>>(row, mesh, 5);
    VocabParallelHead<double, Residual> head(mesh, "head", 5, 3, normal);
    expect_adjoint<Tokens>(head, mesh, 3);
}

TEST(adjoint_identity, linear_layers) {
    on_layer_meshes([](const Mesh& mesh) {
        expect_adjoints<residual_on_every_rank>(mesh);
        expect_adjoints<residual_over_tp>(mesh);
    });
}

} // namespace

} // namespace differences_test
