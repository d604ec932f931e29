#include "layout/values.hpp"

#include <reigen/layout/nested.hpp>

#include <gtest/gtest.h>

namespace nested_test {

using namespace reigen;

// pytorch PR#194457: a shard in a nested mesh read as flat.
TEST(nested, axes_cut_one_after_the_other_in_mesh_order) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        EXPECT_EQ(balanced(mesh, dp | tp, 6).counts(), (std::vector<Index>{2, 1, 2, 1}));
        EXPECT_EQ(balanced(mesh, dp, 6).counts(), (std::vector<Index>{3, 3}));
        EXPECT_EQ(balanced(mesh, dp | tp, 20, 4).counts(), (std::vector<Index>{8, 4, 4, 4}));
        EXPECT_EQ(balanced(mesh, Axes::cp, 6), Partition::whole(6));
    });
    on_mesh({{Axes::tp, 2}, {Axes::dp, 2}}, [](const Mesh& mesh) {
        EXPECT_EQ(balanced(mesh, dp | tp, 7).runs(1), Runs::range(2, 2));
        EXPECT_EQ(balanced(mesh, dp | tp, 7).runs(2), Runs::range(4, 2));
    });
}

TEST(nested, coarsen_undoes_refine) {
    for (const std::vector<MeshAxis>& axes :
         {std::vector<MeshAxis>{{Axes::dp, 2}, {Axes::tp, 2}}, {{Axes::tp, 2}, {Axes::dp, 2}}})
        on_mesh(axes, [](const Mesh& mesh) {
            for (const Axes from : {Axes::none, Axes::dp, Axes::tp})
                for (const Index n : {0, 1, 3, 11}) {
                    const Partition p = scrambled(mesh, from, n);
                    const Partition fine = refine(p, mesh, from, dp | tp);
                    EXPECT_EQ(fine.ranks(), 4);
                    EXPECT_EQ(coarsen(fine, mesh, dp | tp, from), p);
                }
        });
}

TEST(nested, refine_gives_each_rank_a_part_of_what_it_had) {
    on_mesh({{Axes::tp, 2}, {Axes::dp, 2}}, [](const Mesh& mesh) {
        const Partition p = Partition::of_runs(8, {{{0, 1, 2}, {6, 1, 2}}, {{2, 1, 4}}});
        const Partition fine = refine(p, mesh, dp, dp | tp);
        // Joint ranks (tp, dp): dp cuts first by coordinate, tp what is left.
        EXPECT_EQ(fine.runs(0), Runs::range(0, 2));
        EXPECT_EQ(fine.runs(1), Runs::range(2, 2));
        EXPECT_EQ(fine.runs(2), Runs::range(6, 2));
        EXPECT_EQ(fine.runs(3), Runs::range(4, 2));
        EXPECT_THROW(refine(p, mesh, dp, tp), ArgumentError);
        EXPECT_THROW(coarsen(p, mesh, dp, tp), ArgumentError);
    });
}

TEST(nested, coarsen_counts_what_several_ranks_hold_once) {
    on_world(3, [](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, 3}});
        const Partition p = Partition::of_runs(5, {Runs::range(0, 3), Runs::range(2, 2), Runs::range(3, 2)});
        EXPECT_EQ(coarsen(p, mesh, tp, Axes::none), Partition::whole(5));
    });
}

} // namespace nested_test
