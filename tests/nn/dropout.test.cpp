#include "nn/support.hpp"

#include <reigen/nn/dropout.hpp>

namespace dropout_test {

using namespace layer_cases;
using namespace reigen;

namespace {

template <Placement Where>
Sharded<float, Where> dropped(const Mesh& mesh, const Dropout& dropout, const Pass& pass) {
    auto x = Sharded<float, Where>::from_global(mesh, pass.sequences.rows(mesh, Where.rows), 5,
                                                [](Index i, Index j) { return 1 + 5 * i + j; });
    dropout.apply(x, pass);
    return x;
}

TEST(dropout_layer, every_mesh_drops_what_one_rank_drops) {
    const Dropout dropout("blocks.0.attention", 0.4, 7);
    for (const auto layout : {SequenceLayout::contiguous, SequenceLayout::zigzag, SequenceLayout::striped})
        on_layer_meshes([&](const Mesh& mesh) {
            const Pass pass{.sequences = {3, 7, layout}, .training = true, .step = 4, .micro_batch = 1};
            const auto alone = dropped<residual_on_every_rank>(Mesh(), dropout, {{3, 7}, true, 4, 1});
            const Dense want = alone.local().cast<double>();
            expect_matches(dropped<residual_on_every_rank>(mesh, dropout, pass), want, 0, "rows over dp|cp");
            expect_matches(dropped<residual_over_tp>(mesh, dropout, pass), want, 0, "rows over dp|cp|tp");
        });
}

TEST(dropout_layer, step_micro_batch_name_and_seed_change_what_is_dropped) {
    const Pass pass{.sequences = {3, 7}, .training = true};
    Pass next_step = pass, next_micro_batch = pass;
    next_step.step = 1;
    next_micro_batch.micro_batch = 1;
    const Dropout dropout("a", 0.4, 7);
    const auto of = [](const Dropout& d, const Pass& p) {
        return Dense(dropped<residual_on_every_rank>(Mesh(), d, p).local().cast<double>());
    };
    const Dense first = of(dropout, pass);
    EXPECT_EQ(first, of(dropout, pass));
    EXPECT_NE(first, of(dropout, next_step));
    EXPECT_NE(first, of(dropout, next_micro_batch));
    EXPECT_NE(of(dropout, next_step), of(dropout, next_micro_batch));
    EXPECT_NE(first, of(Dropout("b", 0.4, 7), pass));
    EXPECT_NE(first, of(Dropout("a", 0.4, 8), pass));
}

TEST(dropout_layer, outside_training_nothing_is_dropped) {
    const auto x = dropped<residual_on_every_rank>(Mesh(), Dropout("a", 0.4, 7), {.sequences = {3, 7}});
    for (Index i = 0; i < 105; ++i)
        EXPECT_EQ(x.data()[i], float(1 + i));
}

TEST(dropout_layer, a_probability_outside_zero_to_one_is_refused) {
    EXPECT_THROW(Dropout("a", 1, 7), ArgumentError);
    EXPECT_THROW(Dropout("a", -0.1, 7), ArgumentError);
}

} // namespace

} // namespace dropout_test
