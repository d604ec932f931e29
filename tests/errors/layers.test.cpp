#include "errors/wrong_calls.hpp"

#include <reigen/nn/adamw.hpp>
#include <reigen/nn/block.hpp>
#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/embedding.hpp>
#include <reigen/nn/gradients.hpp>

namespace layers_test {

using namespace wrong_calls;

namespace {

constexpr auto shape_error = Refused::shape;
constexpr auto argument_error = Refused::argument;

// Of the two placements of a residual stream the one that gathers before it computes.
constexpr Placement stream = residual_over_tp;
using Tokens = Sharded<float, stream>;
using Features = Sharded<float, features_over_tp>;
using Column = ColumnParallelLinear<float, stream>;
using Row = RowParallelLinear<float, stream>;
using Embedding = VocabParallelEmbedding<float, stream>;
using Head = VocabParallelHead<float, stream>;
using Loss = VocabParallelCrossEntropy<float>;
using LayerNorm = Norm<float, stream>;
using Weight = Parameter<float, replicated, tp>;

Tokens tokens(const Communicator& world, Index rows, Index cols, Axes axis = tp) {
    return Tokens::zeros(over(world, axis), rows, cols);
}

Features features(const Communicator& world, Index rows, Index cols) {
    return Features::zeros(over(world, tp), rows, cols);
}

std::vector<std::int32_t> zeros(Index count) {
    return std::vector<std::int32_t>(std::size_t(count));
}

const std::vector<WrongCall> linear = {
    {"x of another width", shape_error, "w.weight: a is 8x5, b is 4x6",
     [](auto& world) { Column(over(world, tp), "w", 4, 6, {}).forward(tokens(world, 8, 5)); }},
    {"x on another mesh", argument_error, "different meshes, dp=%P and tp=%P",
     [](auto& world) { Column(over(world, tp), "w", 4, 6, {}).forward(tokens(world, 8, 4, dp)); }},
    {"a gradient of another width", shape_error, "w.weight: a is 8x7, b is 6x4",
     [](auto& world) {
         Column(over(world, tp), "w", 4, 6, {}).backward({tokens(world, 8, 4)}, features(world, 8, 7));
     }},
    {"a gradient of other tokens", shape_error, "8x4 of the residual stream and 9x6 of features",
     [](auto& world) {
         Column(over(world, tp), "w", 4, 6, {}).backward({tokens(world, 8, 4)}, features(world, 9, 6));
     }},
    {"features of another width", shape_error, "a is 8x5, b is 4x6",
     [](auto& world) { Row(over(world, tp), "w", 4, 6, {}).forward(features(world, 8, 5)); }},
    {"a row gradient of another width", shape_error, "w.weight: a is 8x7, b is 6x4",
     [](auto& world) { Row(over(world, tp), "w", 4, 6, {}).backward({features(world, 8, 4)}, tokens(world, 8, 7)); }},
    {"a row gradient of other tokens", shape_error, "9x6 of the residual stream and 8x4 of features",
     [](auto& world) { Row(over(world, tp), "w", 4, 6, {}).backward({features(world, 8, 4)}, tokens(world, 9, 6)); }},
    {"a layer of negative width", argument_error, "-4 items",
     [](auto& world) { Column(over(world, tp), "w", -4, 6, {}); }},
    {"features divided for other ranks", shape_error, "the partition is for 7 ranks",
     [](auto& world) { Column(over(world, tp), "w", 4, Partition::balanced(9, 7), {}); }},
    {"a layer whose weights overflow", shape_error, "4611686018427387904 times 6",
     [](auto& world) { Row(over(world, tp), "w", huge, 6, {}); }},
};

const std::vector<WrongCall> vocabulary = {
    {"a negative vocabulary", argument_error, "-5 items",
     [](auto& world) { Embedding(over(world, tp), "e", -5, 4, {}); }},
    {"an id beyond the vocabulary", argument_error, "e.weight: 1 ids of the batch are not in [0, 5)",
     [](auto& world) {
         const std::vector<std::int32_t> ids = {0, 5, 1};
         Embedding(over(world, tp), "e", 5, 4, {}).forward(ids, {.sequences = {1, 3}});
     }},
    {"a negative id", argument_error, "e.weight: 2 ids of the batch are not in [0, 5)",
     [](auto& world) {
         const std::vector<std::int32_t> ids = {-1, 4, std::numeric_limits<std::int32_t>::min()};
         Embedding(over(world, tp), "e", 5, 4, {}).forward(ids, {.sequences = {1, 3}});
     }},
    {"another number of ids than of tokens", shape_error, "e.weight: 2 ids for 3 tokens",
     [](auto& world) { Embedding(over(world, tp), "e", 5, 4, {}).forward(zeros(2), {.sequences = {1, 3}}); }},
    {"ids of negative sequences", argument_error, "-1 sequences of 3",
     [](auto& world) { Embedding(over(world, tp), "e", 5, 4, {}).forward(zeros(3), {.sequences = {-1, 3}}); }},
    {"an embedding's gradient of another width", shape_error, "e.weight: dy is 3x6",
     [](auto& world) { Embedding(over(world, tp), "e", 5, 4, {}).backward({zeros(3)}, tokens(world, 3, 6)); }},
    {"an embedding's gradient of fewer tokens", shape_error, "it looked up 9 rows of 4",
     [](auto& world) { Embedding(over(world, tp), "e", 5, 4, {}).backward({zeros(9)}, tokens(world, 3, 4)); }},
    {"a head without a table", argument_error, "no table",
     [](auto&) { Head(std::shared_ptr<VocabularyTable<float>>()); }},
    {"a head's input of another width", shape_error, "h.weight: a is 3x6, b is 4x5",
     [](auto& world) { Head(over(world, tp), "h", 5, 4, {}).forward(tokens(world, 3, 6)); }},
    {"a head's gradient of other classes", shape_error, "h.weight: a is 3x6, b is 5x4",
     [](auto& world) { Head(over(world, tp), "h", 5, 4, {}).backward({tokens(world, 3, 4)}, features(world, 3, 6)); }},
    {"a head's gradient of other tokens", shape_error, "3x4 of the residual stream and 2x5 of features",
     [](auto& world) { Head(over(world, tp), "h", 5, 4, {}).backward({tokens(world, 3, 4)}, features(world, 2, 5)); }},
    {"a label that is no class", argument_error, "1 labels of the batch are neither in [0, 5)",
     [](auto& world) { Loss().forward(features(world, 2, 5), std::vector<std::int32_t>{4, 5}); }},
    {"another number of labels than of rows", shape_error, "cross_entropy: 3 labels for 2 rows",
     [](auto& world) { Loss().forward(features(world, 2, 5), zeros(3)); }},
    {"smoothing of everything", argument_error, "smoothing 1", [](auto&) { Loss({.smoothing = 1}); }},
    {"negative smoothing", argument_error, "smoothing -0.1", [](auto&) { Loss({.smoothing = -0.1}); }},
    {"smoothing that is no number", argument_error, "smoothing nan", [](auto&) { Loss({.smoothing = not_a_number}); }},
    {"smoothing over a single class", argument_error, "smoothing 0.1 over 1 classes",
     [](auto& world) { Loss({.smoothing = 0.1}).forward(features(world, 2, 1), zeros(2)); }},
};

const std::vector<WrongCall> norms_and_dropout = {
    {"a norm of no width", argument_error, "norm: width 0",
     [](auto& world) { LayerNorm(over(world, tp), "norm", 0, NormKind::rms_norm); }},
    {"a negative epsilon", argument_error, "epsilon -0.1",
     [](auto& world) { LayerNorm(over(world, tp), "norm", 4, NormKind::rms_norm, -0.1); }},
    {"an epsilon that is no number", argument_error, "epsilon nan",
     [](auto& world) { LayerNorm(over(world, tp), "norm", 4, NormKind::rms_norm, not_a_number); }},
    {"a norm of another width", shape_error, "x is 8x5, the scale has 4 elements",
     [](auto& world) { LayerNorm(over(world, tp), "norm", 4, NormKind::rms_norm).forward(tokens(world, 8, 5)); }},
    {"a norm's gradient of other tokens", shape_error, "norm.scale: 8x4 and 9x4",
     [](auto& world) {
         LayerNorm norm(over(world, tp), "norm", 4, NormKind::layer_norm);
         norm.backward(norm.forward(tokens(world, 8, 4)).saved, tokens(world, 9, 4));
     }},
    {"a norm's gradient into another width", shape_error, "norm.scale: 8x4 and 8x3",
     [](auto& world) {
         LayerNorm norm(over(world, tp), "norm", 4, NormKind::layer_norm);
         auto dx = tokens(world, 8, 3);
         norm.backward_add(norm.forward(tokens(world, 8, 4)).saved, tokens(world, 8, 4), dx);
     }},
    {"dropout of everything", argument_error, "drop: probability 1", [](auto&) { Dropout("drop", 1, 0); }},
    {"negative dropout", argument_error, "probability -0.5", [](auto&) { Dropout("drop", -0.5, 0); }},
    {"dropout that is no number", argument_error, "probability nan", [](auto&) { Dropout("drop", not_a_number, 0); }},
};

AttentionShape eight_wide() {
    return {.width = 8, .heads = {4, 2}, .head_dim = 2};
}

using Layer = Attention<float, stream>;

/// An attention layer of a shape, and one pass of tokens that are those of `sequences` or are not.
void attend(const Communicator& world, const AttentionShape& shape, Index rows, const Sequences& sequences,
            Index rotary_dim = 2) {
    const Layer layer(over(world, tp), "attention", shape, RotaryPositions<float>(rotary_dim), {}, {});
    layer.forward(tokens(world, rows, shape.width), {.sequences = sequences});
}

const std::vector<WrongCall> attention = {
    {"heads that do not group", shape_error, "4 query heads do not share 3 K/V heads",
     [](auto& world) { attend(world, {.width = 8, .heads = {4, 3}, .head_dim = 2}, 6, {1, 6}); }},
    {"heads of no columns", argument_error, "heads of 0 columns",
     [](auto& world) { attend(world, {.width = 8, .heads = {4, 2}, .head_dim = 0}, 6, {1, 6}, 0); }},
    {"rotary positions for other heads", shape_error, "heads of 2, rotary positions for heads of 4",
     [](auto& world) { attend(world, eight_wide(), 6, {1, 6}, 4); }},
    {"rotary positions for heads of odd size", argument_error, "head_dim is 3",
     [](auto& world) { attend(world, eight_wide(), 6, {1, 6}, 3); }},
    {"rotary positions of base 0", argument_error, "the base is 0", [](auto&) { RotaryPositions<float>(4, 0); }},
    {"a mask that looks back less than 0", argument_error, "window of -1 back",
     [](auto& world) {
         attend(world, {.width = 8, .heads = {4, 2}, .head_dim = 2, .mask = Mask::window(-1)}, 6, {1, 6});
     }},
    {"other tokens than the pass has", shape_error,
     "6x8, do not lie as the tokens of 1 contiguous sequences of 7; divide them by sequences.rows(mesh, dp|cp",
     [](auto& world) { attend(world, eight_wide(), 6, {1, 7}); }},
    {"a pass of stripes that its layout does not have", argument_error, "stripes of 2 in the contiguous layout",
     [](auto& world) { attend(world, eight_wide(), 6, {1, 6, SequenceLayout::contiguous, 2}); }},
    {"an mlp of negative hidden features", argument_error, "-6 items",
     [](auto& world) { Mlp<float, stream>(over(world, tp), "mlp", 4, -6, MlpKind::gelu, {}, {}); }},
    {"a gated mlp of negative hidden features", argument_error, "-6",
     [](auto& world) { Mlp<float, stream>(over(world, tp), "mlp", 4, -6, MlpKind::swiglu, {}, {}); }},
};

const std::vector<WrongCall> parameters = {
    {"an initial mean that is no number", argument_error, "mean nan",
     [](auto& world) { Weight(over(world, tp), "w", 2, 3, {.mean = not_a_number}); }},
    {"a negative deviation", argument_error, "deviation -0.02",
     [](auto& world) { Weight(over(world, tp), "w", 2, 3, {.deviation = -0.02}); }},
    {"a deviation without end", argument_error, "deviation inf",
     [](auto& world) { Weight(over(world, tp), "w", 2, 3, {.deviation = infinity}); }},
    {"a parameter listed twice", argument_error, "parameter w is listed twice",
     [](auto& world) {
         Weight w(over(world, tp), "w", 2, 3, {});
         synchronise_gradients<float>(std::vector{w.view(), w.view()});
     }},
    {"a parameter whose norm would count twice", argument_error, "gradient_norm: parameter w is listed twice",
     [](auto& world) {
         Weight w(over(world, tp), "w", 2, 3, {});
         gradient_norm<float>(std::vector{w.view(), w.view()});
     }},
    {"a parameter that two meshes have", argument_error, "parameters w and v lie on different meshes",
     [](auto& world) {
         Weight w(over(world, tp), "w", 2, 3, {}), v(over(world, dp), "v", 2, 3, {});
         synchronise_gradients<float>(std::vector{w.view(), v.view()});
     }},
    {"a gradient that does not lie in one piece", argument_error, "the elements of w do not lie one after the other",
     [](auto& world) {
         Weight w(over(world, tp), "w", 2, 3, {});
         RowMatrix<float> wide(2, 7);
         auto view = w.view();
         view.gradient = strided(wide).block(0, 0, 2, 3);
         zero_gradients<float>(std::vector{view});
     }},
    {"an optimizer of a parameter listed twice", argument_error, "AdamW: parameter w is listed twice",
     [](auto& world) {
         Weight w(over(world, tp), "w", 2, 3, {});
         AdamW<float>({w.view(), w.view()}, {});
     }},
    {"beta1 of 1", argument_error, "beta1 1", [](auto&) { AdamW<float>({}, {.beta1 = 1}); }},
    {"a negative beta2", argument_error, "beta2 -0.5", [](auto&) { AdamW<float>({}, {.beta2 = -0.5}); }},
    {"an epsilon of 0", argument_error, "epsilon 0", [](auto&) { AdamW<float>({}, {.epsilon = 0}); }},
    {"a negative weight decay", argument_error, "weight decay -1",
     [](auto&) { AdamW<float>({}, {.weight_decay = -1}); }},
    {"an option that is no number", argument_error, "beta1 nan",
     [](auto&) { AdamW<float>({}, {.beta1 = not_a_number}); }},
    {"a learning rate that is no number", argument_error, "learning rate nan",
     [](auto&) { AdamW<float>({}, {}).step(not_a_number); }},
    {"a negative learning rate", argument_error, "learning rate -0.1", [](auto&) { AdamW<float>({}, {}).step(-0.1); }},
    {"a negative gradient factor", argument_error, "gradient factor -1",
     [](auto&) { AdamW<float>({}, {}).step(0.1, -1); }},
    {"a negative largest norm", argument_error, "a largest norm of -1", [](auto&) { clip_factor(3, -1); }},
    {"a largest norm that is no number", argument_error, "a largest norm of nan",
     [](auto&) { clip_factor(3, not_a_number); }},
};

} // namespace

TEST(errors, of_linear_layers) {
    expect_refused(linear);
}

TEST(errors, of_norms_and_dropout) {
    expect_refused(norms_and_dropout);
}

TEST(errors, of_attention_layers_and_mlps) {
    expect_refused(attention);
}

TEST(errors, of_parameters_and_their_optimizer) {
    expect_refused(parameters);
}

// Ids and labels are checked by a count over the ranks of the tokens, here each alone: nothing is sent.
TEST(errors, of_vocabulary_and_loss) {
    expect_refused(vocabulary);
}

} // namespace layers_test
