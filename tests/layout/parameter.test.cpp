#include "layout/values.hpp"

#include <reigen/layout/blocks.hpp>
#include <reigen/layout/parameter.hpp>

#include <gtest/gtest.h>

namespace parameter_test {

using namespace reigen;

TEST(parameter, a_view_of_value_and_gradient_with_placements_at_run_time) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        auto w = filled<split_cols(tp)>(mesh, 3, 5);
        auto dw = filled < split_cols(tp) | partial(dp) > (mesh, 3, 5);
        const ParameterView<double> view = parameter_view("w", w, dw);
        EXPECT_EQ(view.name, "w");
        EXPECT_EQ(view.placement, split_cols(tp));
        EXPECT_EQ(view.gradient_placement, (split_cols(tp) | partial(dp)));
        EXPECT_EQ(view.value.data, w.data());
        EXPECT_EQ(view.gradient.data, dw.data());
        EXPECT_EQ(view.cols, 5);
        Sharded<double, split_cols(tp) | partial(dp)> other(mesh, 3, Partition::of_sizes({1, 4}));
        EXPECT_THROW(parameter_view("w", w, other), ShapeError);
    });
}

TEST(parameter, owned_elements_are_each_counted_once) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        const Partition cols = NamedBlocks::heads({4, 2}, 3).partition(world.size());
        Sharded<float, split_cols(tp)> w(mesh, 2, cols);
        Sharded<float, split_cols(tp) | partial(dp)> dw(mesh, 2, cols);
        const auto view = parameter_view("w", w, dw);
        std::vector<double> counts(std::size_t(cols.size()), 0.0);
        for (const reigen::Run& piece : view.owned_cols())
            for (Index j = 0; j < piece.count; ++j)
                counts[std::size_t(w.col_runs()[piece[j]])] += 1;
        world.all_reduce(counts);
        EXPECT_EQ(counts, std::vector<double>(std::size_t(cols.size()), 1.0));
        ASSERT_EQ(view.owned_rows().size(), 1U);
        EXPECT_EQ(view.owned_rows()[0], (reigen::Run{0, 1, 2}));
    });
}

} // namespace parameter_test
