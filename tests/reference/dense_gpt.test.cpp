// The reference model is itself checked: every element of every gradient by central differences of the loss.

#include "reference/dense_gpt.hpp"

#include <gtest/gtest.h>

#include <random>

namespace dense_gpt_test {

namespace {

using namespace reference;

Tensors random_parameters(const GptConfig& config, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<double> normal(0, 0.4);
    Tensors parameters = DenseGpt::zeros(config);
    for (auto& [name, tensor] : parameters)
        for (double& element : tensor.reshaped())
            element = normal(engine) + (name.ends_with(".scale") ? 1 : 0);
    return parameters;
}

struct Text {
    Index length;
    std::vector<Index> ids, labels;
};

Text some_text(const GptConfig& config, Index batch, Index length) {
    Text text{length, {}, {}};
    for (Index i = 0; i < batch * length; ++i) {
        text.ids.push_back((i * i + 3 * i) % config.vocabulary);
        text.labels.push_back((7 * i + 2) % config.vocabulary);
    }
    text.labels[3] = config.ignored_label;
    return text;
}

void expect_gradients_are_differences(const GptConfig& config, const DropoutFactor& dropout = {}) {
    DenseGpt gpt(config, random_parameters(config, 1));
    gpt.set_dropout(dropout);
    const Text text = some_text(config, 2, 5);
    gpt.loss_and_gradients(text.ids, text.labels, text.length);
    const Tensors gradients = gpt.gradients();
    ASSERT_EQ(gradients.size(), gpt.parameters().size());
    const double step = 1e-5;
    for (auto& [name, tensor] : gpt.parameters())
        for (Index i = 0; i < tensor.rows(); ++i)
            for (Index j = 0; j < tensor.cols(); ++j) {
                const double before = tensor(i, j);
                tensor(i, j) = before + step;
                const double above = gpt.loss(text.ids, text.labels, text.length);
                tensor(i, j) = before - step;
                const double below = gpt.loss(text.ids, text.labels, text.length);
                tensor(i, j) = before;
                ASSERT_NEAR(gradients.at(name)(i, j), (above - below) / (2 * step), 2e-9)
                    << name << " (" << i << ", " << j << ")";
            }
}

TEST(dense_gpt, gradients_are_differences_of_the_loss_with_gelu_and_layer_norm) {
    expect_gradients_are_differences({.layers = 1, .width = 6, .hidden = 5, .vocabulary = 7});
}

TEST(dense_gpt, gradients_are_differences_of_the_loss_with_swiglu_rms_norm_window_and_tied_head) {
    expect_gradients_are_differences({.layers = 2,
                                      .width = 6,
                                      .heads = 3,
                                      .kv_heads = 1,
                                      .head_dim = 2,
                                      .hidden = 5,
                                      .vocabulary = 7,
                                      .swiglu = true,
                                      .rms_norm = true,
                                      .tied = true,
                                      .window = 2,
                                      .smoothing = 0.2});
}

TEST(dense_gpt, gradients_are_differences_of_the_loss_with_dropout) {
    expect_gradients_are_differences(
        {.layers = 1, .width = 6, .hidden = 5, .vocabulary = 7},
        [](Index site, Index i, Index j) { return (site + 3 * i + 5 * j) % 4 ? 1.25 : 0; });
}

TEST(dense_gpt, cross_entropy_of_eight_rising_logits) {
    Matrix logits(1, 8);
    logits << 0, 1, 2, 3, 4, 5, 6, 7;
    EXPECT_NEAR(cross_entropy(logits, {3}, 0, -100).loss, 4.458340, 1e-6);
}

TEST(dense_gpt, a_token_sees_none_that_follow_it) {
    const GptConfig config{.layers = 2};
    DenseGpt gpt(config, random_parameters(config, 2));
    Text text = some_text(config, 1, 6);
    const Matrix before = gpt.logits(text.ids, text.length);
    text.ids[4] = (text.ids[4] + 1) % config.vocabulary;
    const Matrix after = gpt.logits(text.ids, text.length);
    EXPECT_EQ(before.topRows(4), after.topRows(4));
    EXPECT_NE(before.row(4), after.row(4));
    EXPECT_NE(before.row(5), after.row(5));
}

TEST(dense_gpt, scores_depend_on_the_distance_of_two_positions_only) {
    const GptConfig config{.heads = 1, .kv_heads = 1, .head_dim = 4};
    Matrix q = Matrix::Constant(9, 4, 0.5), k(9, 4);
    for (Index i = 0; i < 9; ++i)
        k.row(i) << 1, 2, 3, 4;
    rotate(q, 0, 1, config, 9, false);
    rotate(k, 0, 1, config, 9, false);
    const auto score = [&](Index query, Index key) { return dot(&q(query, 0), &k(key, 0), 4); };
    EXPECT_NEAR(score(5, 2), score(8, 5), 1e-12);
    EXPECT_GT(std::abs(score(5, 2) - score(5, 3)), 1e-2);
}

} // namespace

} // namespace dense_gpt_test
