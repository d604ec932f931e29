#include "reference/attention.hpp"
#include "nn/differences.hpp"

#include <reigen/nn/attention.hpp>

namespace attention_test {

using namespace layer_cases;
using namespace reigen;

namespace {

const Initial normal = {.deviation = 1, .seed = 3};

struct Case {
    Index width = 3;
    HeadGroups heads;
    Index head_dim = 2;
    Mask mask = Mask::causal();
    SequenceLayout layout = SequenceLayout::zigzag;
    Index batch = 2;
    Index length = 5;

    AttentionShape shape() const { return {width, heads, head_dim, mask}; }
    Pass pass() const { return {.sequences = {batch, length, layout}}; }
    Index tokens() const { return batch * length; }
    Index packed() const { return (heads.query_heads + 2 * heads.kv_heads) * head_dim; }

    reference::GptConfig dense() const {
        return {.heads = heads.query_heads, .kv_heads = heads.kv_heads, .head_dim = head_dim, .window = mask.left};
    }
};

/// The attention layer in plain loops.
struct DenseAttention {
    const Case& c;
    Dense w = waves(1, c.width, c.packed()), b = waves(2, 1, c.packed());
    Dense w_out = waves(3, c.heads.query_heads* c.head_dim, c.width), b_out = waves(4, 1, c.width);
    Dense x = waves(5, c.tokens(), c.width), dy = waves(6, c.tokens(), c.width);
    Dense y, dx, dw, db, dw_out, db_out;

    explicit DenseAttention(const Case& c_) : c(c_) {
        const reference::GptConfig config = c.dense();
        const Index turning = config.heads + config.kv_heads;
        Dense qkv = times(x, w).rowwise() + b.row(0);
        reference::rotate(qkv, 0, turning, config, c.length, false);
        const auto attended = reference::attention_forward(qkv, config, c.batch, c.length);
        y = times(attended.out, w_out).rowwise() + b_out.row(0);
        const Dense dout = times(dy, w_out.transpose());
        Dense dqkv = reference::attention_backward(attended, qkv, dout, config, c.batch, c.length);
        reference::rotate(dqkv, 0, turning, config, c.length, true);
        const Dense ones = Dense::Ones(1, c.tokens());
        dx = times(dqkv, w.transpose());
        dw = times(x.transpose(), dqkv);
        db = times(ones, dqkv);
        dw_out = times(attended.out.transpose(), dy);
        db_out = times(ones, dy);
    }
};

template <Placement Residual>
void expect_as_dense(const Mesh& mesh, const Case& c, const DenseAttention& want) {
    using Tokens = Sharded<double, Residual>;
    SCOPED_TRACE(
        concat(c.heads.query_heads, " heads on ", c.heads.kv_heads, ", ", to_string(c.layout), ", ", Residual));
    Attention<double, Residual> attention(mesh, "attention", c.shape(), RotaryPositions<double>(c.head_dim), normal,
                                          normal);
    const auto parameters = attention.parameters();
    ASSERT_EQ(parameters.size(), 4U);
    set_value(parameters[0], want.w);
    set_value(parameters[1], want.b);
    set_value(parameters[2], want.w_out);
    set_value(parameters[3], want.b_out);
    const Partition rows = c.pass().sequences.rows(mesh, Residual.rows);
    auto [y, saved] = attention.forward(Tokens::from_global(mesh, rows, c.width, want.x), c.pass());
    const auto dx = attention.backward(std::move(saved), Tokens::from_global(mesh, rows, c.width, want.dy));
    synchronise_gradients<double>(parameters);
    expect_matches(y, want.y, 1e-11, "y");
    expect_matches(dx, want.dx, 1e-11, "dx");
    expect_gradient(parameters[0], want.dw, 1e-11);
    expect_gradient(parameters[1], want.db, 1e-11);
    expect_gradient(parameters[2], want.dw_out, 1e-11);
    expect_gradient(parameters[3], want.db_out, 1e-11);
}

void expect_as_dense_on_every_mesh(const Case& c) {
    const DenseAttention want(c);
    on_layer_meshes([&](const Mesh& mesh) {
        expect_as_dense<residual_on_every_rank>(mesh, c, want);
        expect_as_dense<residual_over_tp>(mesh, c, want);
    });
}

TEST(attention_layer, is_the_dense_one_with_whole_uneven_shared_and_single_key_heads) {
    for (const HeadGroups heads : {HeadGroups{4, 4}, HeadGroups{8, 4}, HeadGroups{4, 2}, HeadGroups{3, 1}})
        expect_as_dense_on_every_mesh({.heads = heads});
}

TEST(attention_layer, is_the_dense_one_with_more_ranks_than_query_heads) {
    expect_as_dense_on_every_mesh({.heads = {2, 1}});
}

TEST(attention_layer, is_the_dense_one_in_every_layout_and_with_a_window) {
    for (const auto layout : {SequenceLayout::contiguous, SequenceLayout::zigzag, SequenceLayout::striped})
        expect_as_dense_on_every_mesh({.heads = {4, 2}, .mask = Mask::window(2), .layout = layout, .length = 7});
}

template <Placement Residual>
void expect_differences(const Mesh& mesh, const Case& c) {
    using Tokens = Sharded<double, Residual>;
    Attention<double, Residual> attention(mesh, "attention", c.shape(), RotaryPositions<double>(c.head_dim), normal,
                                          normal);
    const Partition rows = c.pass().sequences.rows(mesh, Residual.rows);
    Tokens x = Tokens::from_global(mesh, rows, c.width, waves(1, c.tokens(), c.width));
    const Tokens dy = Tokens::from_global(mesh, rows, c.width, waves(2, c.tokens(), c.width));
    auto [y, saved] = attention.forward(x.clone(), c.pass());
    const Tokens dx = attention.backward(std::move(saved), dy);
    const auto parameters = attention.parameters();
    synchronise_gradients<double>(parameters);
    const auto number = [&] { return inner_product(attention.forward(x.clone(), c.pass()).y, dy); };
    expect_difference_quotients(parameters, number);
    expect_difference_quotients(x.spec(), x.strided(), dx.strided(), number, "x");
}

TEST(attention_layer, gradients_are_differences_of_the_forward_pass) {
    const Case c{.width = 2, .heads = {2, 1}, .batch = 1, .length = 4};
    on_few_meshes([&](const Mesh& mesh) {
        expect_differences<residual_on_every_rank>(mesh, c);
        expect_differences<residual_over_tp>(mesh, c);
    });
}

// Of q0 q1 q2 q3 | k0 k1 | v0 v1, rank 0 of two holds q0 q1 k0 v0.
// ColossalAI#817
TEST(attention_layer, ColossalAI_817_a_rank_holds_its_query_heads_and_the_key_heads_they_read) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        Attention<float, residual_on_every_rank> attention(mesh, "attention", Case{.heads = {4, 2}}.shape(),
                                                           RotaryPositions<float>(2), normal, normal);
        const std::string want = mesh.rank(tp) == 0 ? "0-3 8-9 12-13" : "4-7 10-11 14-15"; // two columns a head
        EXPECT_EQ(attention.parameters()[0].spec().col_runs().to_string(), want);
    });
}

// Megatron#560
TEST(attention_layer, Megatron_560_rotary_positions_follow_the_layout) {
    const Sequences sequences{1, 8, SequenceLayout::zigzag};
    const RotaryPositions<double> rotary(2);
    for (int rank = 0; rank < 2; ++rank) {
        const auto table = rotary.at(sequences.positions(2, rank));
        const std::vector<double> want = rank == 0 ? std::vector<double>{0, 1, 6, 7} : std::vector<double>{2, 3, 4, 5};
        for (Index i = 0; i < 4; ++i)
            EXPECT_EQ(*table->cosines(i), std::cos(want[std::size_t(i)]));
    }
}

TEST(attention_layer, layers_share_one_rotary_table_while_positions_stay) {
    const RotaryPositions<double> rotary(4);
    const RotaryPositions<double> copy = rotary;
    const auto first = rotary.at(Runs::range(0, 6));
    EXPECT_EQ(copy.at(Runs::range(0, 6)), first);
    EXPECT_NE(copy.at(Runs::range(1, 6)), first);
}

TEST(attention_layer, rotary_positions_for_other_heads_are_refused) {
    const AttentionShape shape = {4, {2, 1}, 2};
    using Layer = Attention<float, residual_on_every_rank>;
    EXPECT_THROW(Layer(Mesh(), "attention", shape, RotaryPositions<float>(4), normal, normal), ShapeError);
    EXPECT_THROW(RotaryPositions<float>(3), ArgumentError);
}

} // namespace

} // namespace attention_test
