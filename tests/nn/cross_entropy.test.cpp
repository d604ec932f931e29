#include "reference/cross_entropy.hpp"
#include "nn/support.hpp"
#include "support/words.hpp"

#include <reigen/nn/cross_entropy.hpp>

#include <numeric>

namespace cross_entropy_test {

using namespace layer_cases;
using namespace reigen;

namespace {

template <class S>
using Loss = VocabParallelCrossEntropy<S>;

Partition token_rows(const Mesh& mesh, Index batch, Index length) {
    return Sequences{batch, length, SequenceLayout::zigzag}.rows(mesh, token_axes);
}

std::vector<Index> widened(const std::vector<std::int32_t>& labels) {
    return {labels.begin(), labels.end()};
}

/// Loss and gradient of the sharded loss against the dense one, on one mesh.
template <class S>
void expect_as_dense(const Mesh& mesh, const Dense& logits, const std::vector<std::int32_t>& labels, double smoothing) {
    const Loss<S> loss({.smoothing = smoothing});
    const Partition rows = token_rows(mesh, 2, logits.rows() / 2);
    auto sharded = Loss<S>::Logits::from_global(mesh, rows, logits.cols(), logits);
    auto [mean, saved] = loss.forward(std::move(sharded), at_rows(labels, rows.runs(mesh.rank(token_axes))));
    const auto gradient = loss.backward(std::move(saved), 0.5);
    const auto want = reference::cross_entropy(logits, widened(labels), smoothing, -100);
    const double eps = double(std::numeric_limits<S>::epsilon());
    EXPECT_NEAR(mean, want.loss, 30 * eps);
    expect_matches(gradient, 0.5 * want.dlogits, 10 * eps, "gradient");
}

TEST(cross_entropy, loss_and_gradient_are_the_dense_ones_on_every_mesh) {
    const Dense logits = 3 * waves(1, 10, 7);
    const std::vector<std::int32_t> labels = {3, 0, -100, 6, 1, 2, 5, -100, 4, 6};
    on_layer_meshes([&](const Mesh& mesh) {
        for (const double smoothing : {0.0, 0.2}) {
            expect_as_dense<double>(mesh, logits, labels, smoothing);
            expect_as_dense<float>(mesh, logits, labels, smoothing);
        }
    });
}

TEST(cross_entropy, the_mean_is_over_the_global_count_where_ranks_count_unlike_numbers) {
    const Dense logits = waves(2, 8, 5);
    const std::vector<std::int32_t> labels = {1, -100, -100, -100, 2, 3, 4, 0}; // 1 of the first four, all of the rest
    on_mesh({{dp, 2}}, [&](const Mesh& mesh) { expect_as_dense<double>(mesh, logits, labels, 0); });
}

TEST(cross_entropy, fewer_classes_than_ranks) {
    on_mesh({{tp, 4}}, [](const Mesh& mesh) { expect_as_dense<double>(mesh, waves(3, 4, 3), {0, 2, 1, 2}, 0.1); });
}

// Megatron#7452
TEST(cross_entropy, Megatron_7452_logits_are_not_reduced_twice) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{tp, world.size()}});
        auto logits = Loss<double>::Logits::from_global(mesh, 1, 8, [](Index, Index j) { return double(j); });
        const std::vector<std::int32_t> label = {3};
        EXPECT_NEAR(Loss<double>().forward(std::move(logits), label).y, 4.458340, 1e-6);
    });
}

// torchtitan#4297
TEST(cross_entropy, torchtitan_4297_labels_out_of_range_throw_the_same_on_every_rank) {
    on_layer_meshes([](const Mesh& mesh) {
        const Partition rows = token_rows(mesh, 2, 2);
        const std::vector<std::int32_t> labels = at_rows({3, -100, 8, -1}, rows.runs(mesh.rank(token_axes)));
        auto logits = Loss<double>::Logits::zeros(mesh, rows, 8);
        EXPECT_EQ(words_of<ArgumentError>([&] { (void)Loss<double>().forward(std::move(logits), labels); }),
                  "cross_entropy: 2 labels of the batch are neither in [0, 8) nor the ignored -100");
    });
}

// torchtitan#4297
TEST(cross_entropy, torchtitan_4297_ignored_tokens_have_loss_zero_and_gradient_exactly_zero) {
    on_layer_meshes([](const Mesh& mesh) {
        const Partition rows = token_rows(mesh, 2, 1);
        const Loss<double> loss({.smoothing = 0.1});
        auto logits = Loss<double>::Logits::from_global(mesh, rows, 8, 1e4 * waves(4, 2, 8));
        const std::vector<std::int32_t> none = at_rows({-100, -100}, rows.runs(mesh.rank(token_axes)));
        auto [mean, saved] = loss.forward(std::move(logits), none);
        EXPECT_EQ(mean, 0);
        EXPECT_EQ(saved.counted, 0);
        const auto gradient = loss.backward(std::move(saved));
        for (Index i = 0; i < gradient.local().size(); ++i)
            EXPECT_EQ(gradient.data()[i], 0);
    });
}

TEST(cross_entropy, large_logits_stay_finite) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        auto logits = Loss<float>::Logits::from_global(mesh, 1, 4, [](Index, Index j) { return j == 2 ? 1e4 : -1e4; });
        const std::vector<std::int32_t> label = {1};
        auto [mean, saved] = Loss<float>().forward(std::move(logits), label);
        EXPECT_EQ(mean, 2e4);
        Dense want(1, 4);
        want << 0, -1, 1, 0;
        expect_matches(Loss<float>().backward(std::move(saved)), want, 0, "gradient");
    });
}

TEST(cross_entropy, wrong_shapes_and_options_are_refused) {
    on_mesh({}, [](const Mesh& mesh) {
        const std::vector<std::int32_t> one = {1};
        EXPECT_THROW((void)Loss<float>().forward(Loss<float>::Logits::zeros(mesh, 2, 4), one), ShapeError);
        EXPECT_THROW(Loss<float>({.smoothing = 1}), ArgumentError);
    });
}

} // namespace

} // namespace cross_entropy_test
