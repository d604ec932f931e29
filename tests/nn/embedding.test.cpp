#include "nn/support.hpp"
#include "support/words.hpp"

#include <reigen/nn/embedding.hpp>
#include <reigen/nn/gradients.hpp>

namespace embedding_test {

using namespace layer_cases;
using namespace reigen;

namespace {

constexpr Index vocabulary = 7, width = 3;
constexpr double tolerance = 1e-12;
const Initial normal = {.deviation = 1, .seed = 3};
const Pass two_sequences = {.sequences = {2, 5, SequenceLayout::striped}};
const std::vector<std::int32_t> some_ids = {3, 0, 6, 6, 1, 2, 5, 3, 4, 6};

std::vector<std::int32_t> local_ids(const Mesh& mesh, const std::vector<std::int32_t>& ids, const Pass& pass) {
    return at_rows(ids, pass.sequences.rows(mesh, token_axes).runs(mesh.rank(token_axes)));
}

/// Row id_i of the table, for every i.
Dense looked_up(const Dense& table) {
    Dense y(Index(some_ids.size()), table.cols());
    for (Index i = 0; i < y.rows(); ++i)
        y.row(i) = table.row(some_ids[std::size_t(i)]);
    return y;
}

Dense summed_by_id(const Dense& dy) {
    Dense sums = Dense::Zero(vocabulary, dy.cols());
    for (Index i = 0; i < dy.rows(); ++i)
        sums.row(some_ids[std::size_t(i)]) += dy.row(i);
    return sums;
}

template <class X>
X tokens(const Mesh& mesh, const Dense& values) {
    return X::from_global(mesh, two_sequences.sequences.rows(mesh, X::placement.rows), values.cols(), values);
}

template <Placement Residual>
void expect_embedding_as_dense(const Mesh& mesh) {
    using Tokens = Sharded<double, Residual>;
    const Dense table = waves(1, vocabulary, width), dy = waves(2, 10, width);
    VocabParallelEmbedding<double, Residual> embedding(mesh, "embedding", vocabulary, width, normal);
    const auto parameters = embedding.parameters();
    set_value(parameters[0], table);
    auto [y, saved] = embedding.forward(local_ids(mesh, some_ids, two_sequences), two_sequences);
    expect_matches(y, looked_up(table), 0, "y");
    embedding.backward(std::move(saved), tokens<Tokens>(mesh, dy));
    synchronise_gradients<double>(parameters);
    expect_gradient(parameters[0], summed_by_id(dy), tolerance);
}

template <Placement Residual>
void expect_head_as_dense(const Mesh& mesh) {
    using Tokens = Sharded<double, Residual>;
    const Dense table = waves(1, vocabulary, width), x = waves(2, 10, width), dlogits = waves(3, 10, vocabulary);
    VocabParallelHead<double, Residual> head(mesh, "head", vocabulary, width, normal);
    const auto parameters = head.parameters();
    set_value(parameters[0], table);
    auto [logits, saved] = head.forward(tokens<Tokens>(mesh, x));
    expect_matches(logits, times(x, table.transpose()), tolerance, "logits");
    const auto dx = head.backward(std::move(saved), tokens<Sharded<double, features_over_tp>>(mesh, dlogits));
    expect_matches(dx, times(dlogits, table), tolerance, "dx");
    synchronise_gradients<double>(parameters);
    expect_gradient(parameters[0], times(dlogits.transpose(), x), tolerance);
}

TEST(embedding, rows_and_their_gradients_are_the_dense_ones_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        expect_embedding_as_dense<residual_on_every_rank>(mesh);
        expect_embedding_as_dense<residual_over_tp>(mesh);
    });
}

TEST(embedding, the_head_is_the_dense_one_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        expect_head_as_dense<residual_on_every_rank>(mesh);
        expect_head_as_dense<residual_over_tp>(mesh);
    });
}

template <Placement Residual>
void expect_one_table_with_the_sum_of_both_gradients(const Mesh& mesh) {
    using Tokens = Sharded<double, Residual>;
    const Dense dy = waves(2, 10, width), dlogits = waves(3, 10, vocabulary), table = waves(1, vocabulary, width);
    VocabParallelEmbedding<double, Residual> embedding(mesh, "embedding", vocabulary, width, normal);
    VocabParallelHead<double, Residual> head(embedding.table());
    const auto parameters = embedding.parameters();
    EXPECT_EQ(parameters[0].value.data, head.parameters()[0].value.data);
    EXPECT_EQ(parameters[0].gradient.data, head.parameters()[0].gradient.data);
    set_value(parameters[0], table); // as loading does
    auto [y, saved_ids] = embedding.forward(local_ids(mesh, some_ids, two_sequences), two_sequences);
    auto [logits, saved_x] = head.forward(std::move(y));
    expect_matches(logits, times(looked_up(table), table.transpose()), tolerance, "logits");
    (void)head.backward(std::move(saved_x), tokens<Sharded<double, features_over_tp>>(mesh, dlogits));
    embedding.backward(std::move(saved_ids), tokens<Tokens>(mesh, dy));
    synchronise_gradients<double>(parameters);
    expect_gradient(parameters[0], summed_by_id(dy) + times(dlogits.transpose(), looked_up(table)), tolerance);
}

// torchtitan#2252
TEST(embedding, torchtitan_2252_tied_embedding_and_head_are_one_storage_with_the_sum_of_both_gradients) {
    on_layer_meshes([](const Mesh& mesh) {
        expect_one_table_with_the_sum_of_both_gradients<residual_on_every_rank>(mesh);
        expect_one_table_with_the_sum_of_both_gradients<residual_over_tp>(mesh);
    });
}

// openxla#42481
TEST(embedding, openxla_42481_a_gradient_reaches_the_shard_that_holds_its_row_and_no_other) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        const Pass three_tokens{.sequences = {1, 3}};
        VocabParallelEmbedding<double, residual_on_every_rank> embedding(mesh, "embedding", 4, 1, normal);
        const std::vector<std::int32_t> ids = {1, 3, 1};
        auto [y, saved] = embedding.forward(ids, three_tokens);
        y.local() << 1, 2, 4;
        embedding.backward(std::move(saved), y);
        Dense want(4, 1);
        want << 0, 5, 0, 2;
        expect_gradient(embedding.parameters()[0], want, 0);
    });
}

TEST(embedding, ids_outside_the_vocabulary_throw_the_same_on_every_rank) {
    on_layer_meshes([](const Mesh& mesh) {
        VocabParallelEmbedding<float, residual_over_tp> embedding(mesh, "embedding", 4, 2, normal);
        const Pass pass{.sequences = {2, 2}};
        const auto ids = local_ids(mesh, {0, 4, 3, -1}, pass);
        EXPECT_EQ(words_of<ArgumentError>([&] { (void)embedding.forward(ids, pass); }),
                  "embedding.weight: 2 ids of the batch are not in [0, 4)");
    });
}

TEST(embedding, another_number_of_ids_is_refused) {
    on_mesh({}, [](const Mesh& mesh) {
        VocabParallelEmbedding<float, residual_over_tp> embedding(mesh, "embedding", 4, 2, normal);
        const std::vector<std::int32_t> ids = {0, 1, 2};
        EXPECT_THROW((void)embedding.forward(ids, Pass{.sequences = {1, 4}}), ShapeError);
    });
}

} // namespace

} // namespace embedding_test
