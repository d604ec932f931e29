#include "nn/support.hpp"
#include "support/bits.hpp"

#include <reigen/comm/faulty.hpp>
#include <reigen/nn/embedding.hpp>
#include <reigen/nn/linear.hpp>

namespace linear_overlap_test {

using namespace layer_cases;
using namespace reigen;

// Layers with enough tokens for products in steps, against the plain products and redistributions that they stand for:
// equal bits of results and gradients.

namespace {

const Sequences sequences{2, 150, SequenceLayout::zigzag};
const Initial normal = {.deviation = 1, .seed = 3};
constexpr Index width = 11;
constexpr Index features = 14;

template <class X>
X tokens(const Mesh& mesh, Index columns, int which) {
    return X::from_global(mesh, sequences.rows(mesh, X::placement.rows), columns,
                          [&](Index i, Index j) { return wave(which, i, j); });
}

template <class X, class Y>
void expect_same(const X& x, const Y& y, const char* what) {
    EXPECT_TRUE(same_bits(x.strided(), y.strided())) << what;
}

/// This rank's part of the value of a parameter.
template <class S, Placement Where>
Sharded<S, Where> value_of(const Mesh& mesh, const ParameterView<S>& parameter) {
    Sharded<S, Where> value(mesh, parameter.row_partition, parameter.col_partition);
    for (Index i = 0; i < parameter.value.rows; ++i)
        for (Index j = 0; j < parameter.value.cols; ++j)
            value.local()(i, j) = parameter.value(i, j);
    return value;
}

template <class S, Placement Residual>
void expect_column_as_plain(const Mesh& mesh) {
    using Layer = ColumnParallelLinear<S, Residual>;
    Layer layer(mesh, "column", width, features, normal, false);
    const auto weight = layer.parameters()[0];
    const auto w = value_of<S, split_cols(tp)>(mesh, weight);
    const auto x = tokens<typename Layer::X>(mesh, width, 1);
    const auto dy = tokens<typename Layer::Y>(mesh, features, 2);
    auto [y, saved] = layer.forward(x.clone());
    const auto dx = layer.backward(std::move(saved), dy);

    const auto whole = redistribute<residual_on_every_rank>(x);
    expect_same(y, matmul(whole, w), "y");
    expect_same(dx, redistribute<Residual>(input_gradient(dy, w)), "dx");
    auto dw = Sharded < Accumulator<S>, split_cols(tp) | partial(token_axes) > ::zeros(mesh, width, features);
    matmul_into(1, transpose(whole), dy, 1, dw);
    EXPECT_TRUE(same_bits(weight.gradient, dw.strided())) << "dW";
}

template <class S, Placement Residual>
void expect_row_as_plain(const Mesh& mesh) {
    using Layer = RowParallelLinear<S, Residual>;
    Layer layer(mesh, "row", features, width, normal, false);
    const auto weight = layer.parameters()[0];
    const auto w = value_of<S, split_rows(tp)>(mesh, weight);
    const auto x = tokens<typename Layer::X>(mesh, features, 1);
    const auto dy = tokens<typename Layer::Y>(mesh, width, 2);
    auto [y, saved] = layer.forward(x.clone());
    const auto dx = layer.backward(std::move(saved), dy);

    expect_same(y, redistribute<Residual>(matmul(x, w)), "y");
    const auto whole = redistribute<residual_on_every_rank>(dy);
    expect_same(dx, matmul(whole, transpose(w)), "dx");
    auto dw = Sharded < Accumulator<S>, split_rows(tp) | partial(token_axes) > ::zeros(mesh, features, width);
    matmul_into(1, transpose(x), whole, 1, dw);
    EXPECT_TRUE(same_bits(weight.gradient, dw.strided())) << "dW";
}

template <class S, Placement Residual>
void expect_head_as_plain(const Mesh& mesh) {
    VocabParallelHead<S, Residual> head(mesh, "head", features, width, normal);
    const auto table = value_of<S, split_rows(tp)>(mesh, head.parameters()[0]);
    const auto x = tokens<Sharded<S, Residual>>(mesh, width, 1);
    const auto whole = redistribute<residual_on_every_rank>(x);
    expect_same(head.forward(x.clone()).y, matmul(whole, transpose(table)), "logits");
}

template <Placement Residual>
void expect_layers_as_plain(const Mesh& mesh) {
    expect_column_as_plain<float, Residual>(mesh);
    expect_row_as_plain<float, Residual>(mesh);
    expect_head_as_plain<float, Residual>(mesh);
    expect_column_as_plain<double, Residual>(mesh);
    expect_row_as_plain<double, Residual>(mesh);
}

} // namespace

TEST(linear_overlap, layers_have_the_bits_of_plain_products_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        expect_layers_as_plain<residual_on_every_rank>(mesh);
        expect_layers_as_plain<residual_over_tp>(mesh);
    });
}

TEST(linear_overlap, layers_have_the_same_bits_on_a_bad_transport) {
    on_every_world([](const Communicator& world) {
        const auto bad = faulty(unchecked(world), {.delay = 2e-4, .late = 3, .synchronous = true});
        const Mesh mesh(bad, {{tp, world.size()}});
        expect_layers_as_plain<residual_on_every_rank>(mesh);
        expect_layers_as_plain<residual_over_tp>(mesh);
    });
}

} // namespace linear_overlap_test
