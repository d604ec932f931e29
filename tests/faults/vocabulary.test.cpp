#include "nn/support.hpp"
#include "support/words.hpp"

#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/embedding.hpp>
#include <reigen/nn/gradients.hpp>

#include <limits>

namespace vocabulary_test {

using namespace layer_cases;
using namespace reigen;

namespace {

using Loss = VocabParallelCrossEntropy<double>;

void on_token_meshes(const std::function<void(const Mesh&)>& body) {
    on_every_world([&](const Communicator& world) {
        body(Mesh(world, {{Axes::dp, world.size()}}));
        body(Mesh(world, {{Axes::tp, world.size()}}));
    });
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, body);
}

template <Placement Residual>
void expect_gradients_at_home(const Mesh& mesh) {
    const Pass three_tokens{.sequences = {1, 3}};
    VocabParallelEmbedding<double, Residual> embedding(mesh, "embedding", 4, 1, {});
    const Partition rows = three_tokens.sequences.rows(mesh, token_axes);
    auto [y, saved] = embedding.forward(at_rows({1, 3, 1}, rows.runs(mesh.rank(token_axes))), three_tokens);
    for (Index i = 0; i < y.local().rows(); ++i)
        y.local()(i, 0) = std::exp2(double(y.row_runs()[i]));
    embedding.backward(std::move(saved), y);
    const auto parameters = embedding.parameters();
    synchronise_gradients<double>(parameters);
    Dense want(4, 1);
    want << 0, 5, 0, 2;
    expect_gradient(parameters[0], want, 0);
}

} // namespace

// Megatron#7452: logits of a whole row summed once more. Every number of classes around that of ranks.
TEST(faults, megatron_7452_the_loss_of_rising_logits_is_one_number_on_every_mesh) {
    on_token_meshes([](const Mesh& mesh) {
        for (const auto& [classes, want] : {std::pair<Index, double>{8, 4.458340}, {4, 0.440190}}) {
            auto logits = Loss::Logits::from_global(mesh, 3, classes, [](Index, Index j) { return double(j); });
            const std::vector<std::int32_t> labels(std::size_t(logits.local().rows()), 3);
            EXPECT_NEAR(Loss().forward(std::move(logits), labels).y, want, 1e-6);
        }
    });
}

// torchtitan#4297: a label that is no class, on one rank of many.
TEST(faults, torchtitan_4297_one_wrong_label_anywhere_is_the_same_error_everywhere) {
    using Limits = std::numeric_limits<std::int32_t>;
    on_token_meshes([](const Mesh& mesh) {
        for (const std::int32_t wrong : {8, -1, -99, -101, Limits::max(), Limits::min()})
            for (const Index at : {0, 3}) {
                auto logits = Loss::Logits::zeros(mesh, 4, 8);
                std::vector<std::int32_t> labels = {3, -100, 0, 7};
                labels[std::size_t(at)] = wrong;
                const auto mine = at_rows(labels, logits.row_runs());
                EXPECT_EQ(words_of<ArgumentError>([&] { (void)Loss().forward(std::move(logits), mine); }),
                          "cross_entropy: 1 labels of the batch are neither in [0, 8) nor the ignored -100");
            }
        Loss ignoring_a_class({.ignored_label = 3});
        auto logits = Loss::Logits::zeros(mesh, 2, 8);
        const std::vector<std::int32_t> labels = at_rows({3, 3}, logits.row_runs());
        EXPECT_EQ(ignoring_a_class.forward(std::move(logits), labels).y, 0);
    });
}

// The same of a rank that brings too many labels or ids, or too few: the others must not wait for it.
TEST(faults, torchtitan_4297_a_wrong_number_of_labels_or_ids_on_one_rank_is_an_error_on_every_rank) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::dp, world.size()}});
        const bool wrong = world.rank() == world.size() - 1;
        const std::vector<std::int32_t> zeros(wrong ? 3 : 2);
        auto logits = Loss::Logits::zeros(mesh, 2 * world.size(), 8);
        const auto of_labels = words_of<ShapeError>([&] { (void)Loss().forward(std::move(logits), zeros); });
        EXPECT_EQ(of_labels, wrong ? "cross_entropy: 3 labels for 2 rows"
                                   : "cross_entropy: the number of labels is not that of rows on 1 other ranks");
        VocabParallelEmbedding<double, residual_over_tp> embedding(mesh, "embedding", 4, 1, {});
        const Pass pass{.sequences = {world.size(), 2}};
        const auto of_ids = words_of<ShapeError>([&] { (void)embedding.forward(zeros, pass); });
        EXPECT_EQ(of_ids, wrong ? "embedding.weight: 3 ids for 2 tokens"
                                : "embedding.weight: the number of ids is not that of tokens on 1 other ranks");
    });
}

// openxla#42481: a gradient that reached the wrong shard of the table.
TEST(faults, openxla_42481_gradients_of_an_embedding_reach_their_rows_and_no_others) {
    on_token_meshes([](const Mesh& mesh) {
        expect_gradients_at_home<residual_on_every_rank>(mesh);
        expect_gradients_at_home<residual_over_tp>(mesh);
    });
}

// torchtitan#2252: a table that embedding and head share is one parameter; listed by both it would be summed twice.
TEST(faults, torchtitan_2252_a_shared_table_that_is_listed_twice_is_refused) {
    on_token_meshes([](const Mesh& mesh) {
        VocabParallelEmbedding<double, residual_over_tp> embedding(mesh, "embedding", 4, 1, {});
        VocabParallelHead<double, residual_over_tp> head(embedding.table());
        auto parameters = embedding.parameters();
        synchronise_gradients<double>(parameters);
        append(parameters, head.parameters());
        EXPECT_EQ(words_of<ArgumentError>([&] { synchronise_gradients<double>(parameters); }),
                  "synchronise_gradients: parameter embedding.weight is listed twice");
        EXPECT_THROW(gradient_norm<double>(parameters), ArgumentError);
    });
}

} // namespace vocabulary_test
