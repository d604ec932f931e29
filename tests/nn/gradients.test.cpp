#include "nn/support.hpp"

#include <reigen/layout/blocks.hpp>
#include <reigen/nn/adamw.hpp>
#include <reigen/nn/gradients.hpp>
#include <reigen/nn/parameter.hpp>

namespace gradients_test {

using namespace layer_cases;
using namespace reigen;

namespace {

const Initial normal = {.deviation = 1, .seed = 3};

TEST(parameter, starts_with_the_same_numbers_on_every_mesh) {
    on_layer_meshes([](const Mesh& mesh) {
        Parameter<double, replicated, Axes::none> alone(Mesh(), "w", 7, 5, normal);
        const Dense want = alone.value().local();
        Parameter<double, split_rows(tp), token_axes> rows(mesh, "w", 7, 5, normal);
        Parameter<double, split_cols(tp), token_axes> cols(mesh, "w", 7, 5, normal);
        expect_matches(rows.value(), want, 0, "rows");
        expect_matches(cols.value(), want, 0, "columns");
    });
}

TEST(parameter, other_names_and_seeds_give_other_numbers_of_the_asked_size) {
    const auto of = [](const char* name, std::uint64_t seed) {
        return Dense(Parameter<double, replicated, Axes::none>(Mesh(), name, 100, 50,
                                                               {.mean = 2, .deviation = 0.5, .seed = seed})
                         .value()
                         .local());
    };
    const Dense w = of("w", 3);
    EXPECT_EQ(w, of("w", 3));
    EXPECT_NE(w, of("v", 3));
    EXPECT_NE(w, of("w", 4));
    double sum = 0, squares = 0;
    for (Index i = 0; i < w.size(); ++i) {
        sum += w.data()[i] - 2;
        squares += (w.data()[i] - 2) * (w.data()[i] - 2);
    }
    EXPECT_NEAR(sum / 5000, 0, 0.03);
    EXPECT_NEAR(std::sqrt(squares / 5000), 0.5, 0.03);
}

TEST(parameter, memory_is_entered_as_weights_and_gradients_with_the_axes_that_split_it) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        const auto bytes = [](MemoryUse use, Axes split) {
            const auto entries = memory_account()->entries();
            const auto found = entries.find({use, split});
            return found == entries.end() ? 0 : found->second.current;
        };
        const Parameter<float, split_cols(tp), token_axes> w(mesh, "w", 4, 6, normal);
        const Parameter<float, replicated, token_axes> b(mesh, "b", 1, 6, {});
        EXPECT_EQ(bytes(MemoryUse::weights, tp), 4 * 3 * 4);
        EXPECT_EQ(bytes(MemoryUse::gradients, tp), 4 * 3 * 4);
        EXPECT_EQ(bytes(MemoryUse::weights, Axes::none), 6 * 4);
        EXPECT_EQ(bytes(MemoryUse::gradients, Axes::none), 6 * 4);
    });
}

// Megatron#7452: heads are split over tp, one small parameter serves them all: its gradient is a sum over tp.
TEST(gradients, Megatron_7452_a_replicated_parameter_on_sharded_heads_is_summed_over_tp) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        Parameter<double, replicated, tp> shared(mesh, "slope", 1, 2, {});
        Parameter<double, replicated, Axes::none> identical(mesh, "bias", 1, 2, {});
        const double first = mesh.rank(tp) == 0 ? 1 : 3;
        shared.gradient().local() << first, first + 1;
        identical.gradient().local() << 5, 6;
        const std::vector parameters = {shared.view(), identical.view()};
        synchronise_gradients<double>(parameters);
        Dense want(1, 2);
        want << 4, 6;
        expect_gradient(parameters[0], want, 0);
        want << 5, 6; // Automodel#3822: identical work on both ranks stays as it is
        expect_gradient(parameters[1], want, 0);
    });
}

/// Where each rank's gradient of column j is 100 rank + j, the sum over the holders of j.
Dense sums_over_holders(const Partition& columns) {
    Dense want = Dense::Zero(2, columns.size());
    for (int rank = 0; rank < columns.ranks(); ++rank)
        for (Index j = 0; j < columns.size(); ++j)
            for (Index i = 0; i < 2 && columns.runs(rank).find(j); ++i)
                want(i, j) += double(100 * rank + j + 1000 * i);
    return want;
}

TEST(gradients, columns_of_shared_key_value_heads_are_summed_over_their_holders) {
    for (const HeadGroups groups : {HeadGroups{4, 1}, HeadGroups{4, 2}, HeadGroups{6, 2}, HeadGroups{8, 4}})
        for (const int ranks : {1, 2, 3, 4})
            on_mesh({{tp, ranks}}, [&](const Mesh& mesh) {
                const Partition columns = NamedBlocks::heads(groups, 2).partition(ranks);
                Parameter<double, split_cols(tp), Axes::none> w(mesh, "qkv", 2, columns, normal);
                for (Index i = 0; i < 2; ++i)
                    for (Index j = 0; j < w.gradient().local().cols(); ++j)
                        w.gradient().local()(i, j) =
                            double(100 * mesh.rank(tp) + columns.runs(mesh.rank(tp))[j] + 1000 * i);
                const std::vector parameters = {w.view()};
                synchronise_gradients<double>(parameters);
                expect_gradient(parameters[0], sums_over_holders(columns), 0);
            });
}

TEST(gradients, small_ones_travel_together_and_large_ones_alone) {
    for (const int ranks : {1, 2, 3})
        on_mesh({{tp, ranks}}, [&](const Mesh& mesh) {
            Parameter<double, replicated, tp> a(mesh, "a", 1, 3, {}), large(mesh, "large", 100, 90, {}),
                b(mesh, "b", 2, 2, {});
            Parameter<double, replicated, Axes::none> c(mesh, "c", 1, 4, {});
            const std::vector parameters = {a.view(), large.view(), b.view(), c.view()};
            for (const auto& parameter : parameters)
                for (Index i = 0; i < parameter.rows; ++i)
                    for (Index j = 0; j < parameter.cols; ++j)
                        parameter.gradient(i, j) = double((mesh.rank(tp) + 1) * (1000 * i + j) + parameter.cols);
            std::vector<double> as_many_as_small(7), as_many_as_large(9000);
            const auto messages = [&](const auto& body) {
                const Index before = mesh[tp].traffic().messages;
                body();
                return mesh[tp].traffic().messages - before;
            };
            const Index want = messages([&] {
                mesh[tp].all_reduce(as_many_as_small);
                mesh[tp].all_reduce(as_many_as_large);
            });
            EXPECT_EQ(messages([&] { synchronise_gradients<double>(parameters); }), want);
            for (const auto& parameter : parameters) {
                const bool summed = parameter.name != "c";
                const int weight = summed ? ranks * (ranks + 1) / 2 : mesh.rank(tp) + 1, copies = summed ? ranks : 1;
                for (Index i = 0; i < parameter.rows; ++i)
                    for (Index j = 0; j < parameter.cols; ++j)
                        EXPECT_EQ(parameter.gradient(i, j), double(weight * (1000 * i + j) + copies * parameter.cols));
            }
        });
}

TEST(gradients, the_norm_counts_copies_once) {
    for (const int ranks : {1, 2, 3, 4})
        on_mesh({{tp, ranks}}, [&](const Mesh& mesh) {
            // 4 query heads on 2 K/V heads of one column: 4 + 2 + 2 columns, of which some are held twice.
            const Partition columns = NamedBlocks::heads({4, 2}, 1).partition(ranks);
            Parameter<double, split_cols(tp), Axes::none> w(mesh, "qkv", 2, columns, normal);
            Parameter<double, split_rows(tp), Axes::none> v(mesh, "out", 5, 2, normal);
            Parameter<double, replicated, Axes::none> b(mesh, "bias", 1, 3, {});
            w.gradient().local().setConstant(2);
            v.gradient().local().setConstant(3);
            b.gradient().local().setConstant(4);
            const std::vector parameters = {w.view(), v.view(), b.view()};
            EXPECT_EQ(gradient_norm<double>(parameters), std::sqrt(16 * 4.0 + 10 * 9.0 + 3 * 16.0));
        });
}

TEST(gradients, the_norm_counts_owned_columns_that_are_not_neighbours) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        const Partition columns = Partition::of_runs(6, {{{1, 2, 3}}, {{0, 1, 6}}}); // 1 3 5 | 0 1 2 3 4 5
        Parameter<double, split_cols(tp), Axes::none> w(mesh, "w", 2, columns, normal);
        w.gradient().local().setConstant(2);
        const std::vector parameters = {w.view()};
        EXPECT_EQ(gradient_norm<double>(parameters), std::sqrt(2 * 6 * 4.0));
    });
}

TEST(gradients, clipping_scales_down_only) {
    EXPECT_EQ(clip_factor(8, 2), 0.25);
    EXPECT_EQ(clip_factor(1, 2), 1);
    EXPECT_EQ(clip_factor(8, 0), 1);
}

TEST(gradients, are_zeroed) {
    Parameter<float, replicated, Axes::none> w(Mesh(), "w", 2, 3, normal);
    w.gradient().local().setConstant(7);
    const std::vector parameters = {w.view()};
    zero_gradients<float>(parameters);
    EXPECT_TRUE((w.gradient().local().array() == 0).all());
}

TEST(adamw_optimizer, every_mesh_moves_the_weights_as_one_rank_does) {
    const auto after_two_steps = [](const Mesh& mesh, auto& w, auto& b) {
        AdamW<double> optimizer({w.view(), b.view()}, {.weight_decay = 0.5});
        for (int step = 0; step < 2; ++step) {
            for (Index i = 0; i < w.gradient().local().rows(); ++i)
                for (Index j = 0; j < w.gradient().local().cols(); ++j)
                    w.gradient().local()(i, j) = wave(step, w.gradient().row_runs()[i], w.gradient().col_runs()[j]);
            b.gradient().local().setZero();
            optimizer.step(0.1, 0.5);
        }
        EXPECT_EQ(optimizer.steps(), 2);
        EXPECT_EQ(mesh.size(tp), w.value().mesh().size(tp));
    };
    on_layer_meshes([&](const Mesh& mesh) {
        Parameter<double, replicated, Axes::none> whole(Mesh(), "w", 4, 7, normal), whole_b(Mesh(), "b", 1, 7, normal);
        Parameter<double, split_cols(tp), Axes::none> w(mesh, "w", 4, 7, normal);
        Parameter<double, replicated, Axes::none> b(mesh, "b", 1, 7, normal);
        const Dense b_before = b.value().local();
        const Dense w_before = whole.value().local();
        after_two_steps(Mesh(), whole, whole_b);
        after_two_steps(mesh, w, b);
        expect_matches(w.value(), whole.value().local(), 0, "w");
        expect_matches(b.value(), b_before, 0, "a vector with zero gradient does not decay");
        for (Index i = 0; i < w_before.size(); ++i)
            EXPECT_GT(std::abs(whole.value().data()[i] - w_before.data()[i]), 1e-3);
    });
}

TEST(adamw_optimizer, state_is_entered_as_such_and_split_as_its_parameter) {
    on_mesh({{tp, 2}}, [](const Mesh& mesh) {
        Parameter<float, split_cols(tp), token_axes> w(mesh, "w", 4, 6, normal);
        const AdamW<float> optimizer({w.view()}, {});
        const auto entries = memory_account()->entries();
        EXPECT_EQ(entries.at({MemoryUse::optimizer, tp}).current, 2 * 4 * 3 * 4);
    });
}

} // namespace

} // namespace gradients_test
