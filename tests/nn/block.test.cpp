#include "nn/differences.hpp"

#include <reigen/nn/block.hpp>

namespace block_test {

using namespace layer_cases;
using namespace reigen;

namespace {

const Sequences sequences{1, 4, SequenceLayout::striped};
const Pass training = {.sequences = sequences, .training = true, .step = 2, .micro_batch = 1};
constexpr Index width = 3;

BlockOptions options_with_dropout(double dropout) {
    return {.attention = {width, {2, 1}, 2},
            .hidden = 3,
            .mlp = MlpKind::swiglu,
            .norm = NormKind::layer_norm,
            .dropout = dropout,
            .seed = 4};
}

const BlockInitial initial = {{.deviation = 1, .seed = 3}, {.deviation = 0.5, .seed = 3}};

template <Placement Residual>
void expect_differences(const Mesh& mesh, double dropout) {
    using Tokens = Sharded<double, Residual>;
    TransformerBlock<double, Residual> block(mesh, "block", options_with_dropout(dropout), RotaryPositions<double>(2),
                                             initial);
    const Partition rows = sequences.rows(mesh, Residual.rows);
    Tokens x = Tokens::from_global(mesh, rows, width, waves(1, 4, width));
    const Tokens dy = Tokens::from_global(mesh, rows, width, waves(2, 4, width));
    auto [y, saved] = block.forward(x.clone(), training);
    const Tokens dx = block.backward(std::move(saved), dy.clone());
    const auto parameters = block.parameters();
    synchronise_gradients<double>(parameters);
    const auto number = [&] { return inner_product(block.forward(x.clone(), training).y, dy); };
    expect_difference_quotients(parameters, number);
    expect_difference_quotients(x.spec(), x.strided(), dx.strided(), number, "x");
}

TEST(transformer_block, gradients_are_differences_of_the_forward_pass) {
    on_few_meshes([](const Mesh& mesh) {
        if (mesh.world().size() % 2 == 0)
            expect_differences<residual_over_tp>(mesh, 0.4);
        else
            expect_differences<residual_on_every_rank>(mesh, 0);
    });
}

TEST(transformer_block, parameters_have_names_of_their_own) {
    TransformerBlock<float, residual_on_every_rank> block(Mesh(), "blocks.0", options_with_dropout(0),
                                                          RotaryPositions<float>(2), initial);
    std::vector<std::string> names;
    for (const auto& parameter : block.parameters())
        names.push_back(parameter.name);
    const std::vector<std::string> want = {
        "blocks.0.attention_norm.scale", "blocks.0.attention_norm.shift", "blocks.0.attention.qkv.weight",
        "blocks.0.attention.qkv.bias",   "blocks.0.attention.out.weight", "blocks.0.attention.out.bias",
        "blocks.0.mlp_norm.scale",       "blocks.0.mlp_norm.shift",       "blocks.0.mlp.up.weight",
        "blocks.0.mlp.up.bias",          "blocks.0.mlp.down.weight",      "blocks.0.mlp.down.bias"};
    EXPECT_EQ(names, want);
}

TEST(transformer_block, keeps_the_residual_stream_once_a_norm_and_without_copies) {
    using Tokens = Sharded<float, residual_on_every_rank>;
    TransformerBlock<float, residual_on_every_rank> block(Mesh(), "block", options_with_dropout(0),
                                                          RotaryPositions<float>(2), initial);
    const Partition rows = sequences.rows(Mesh(), token_axes);
    auto warm_up = block.forward(Tokens::zeros(Mesh(), rows, width), training);
    const Index before = memory_account()->of(MemoryUse::activations).current;
    auto x = Tokens::zeros(Mesh(), rows, width);
    const float* const data = x.data();
    const auto [y, saved] = block.forward(std::move(x), training);
    EXPECT_EQ(saved.attention_norm.x.data(), data);
    // x, its norm, q|k|v, attention, lse, m, its norm, gate|up, y, and mean and deviation of two norms
    const Index numbers = width + width + 8 + 4 + 2 + width + width + 6 + width + 4;
    EXPECT_EQ(memory_account()->of(MemoryUse::activations).current - before, Index(sizeof(float)) * 4 * numbers);
}

} // namespace

} // namespace block_test
