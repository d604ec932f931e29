#include "support/worlds.hpp"

#include <reigen/layout/sequences.hpp>

#include <gtest/gtest.h>

namespace sequences_test {

using namespace reigen;

namespace {
const std::vector<SequenceLayout> layouts = {SequenceLayout::contiguous, SequenceLayout::zigzag,
                                             SequenceLayout::striped};
}

TEST(sequences, rows_are_batch_major_in_the_order_of_the_layout) {
    on_mesh({{Axes::dp, 1}, {Axes::cp, 2}}, [](const Mesh& mesh) {
        const Partition rows = Sequences{2, 8, SequenceLayout::zigzag}.rows(mesh, dp | cp);
        EXPECT_EQ(rows.runs(0).to_string(), "0-1 6-9 14-15");
        EXPECT_EQ(rows.runs(1).to_string(), "2-5 10-13");
    });
}

TEST(sequences, dp_cuts_the_batch_cp_the_sequences_tp_what_is_left) {
    for (const std::vector<MeshAxis>& axes : {std::vector<MeshAxis>{{Axes::dp, 2}, {Axes::cp, 2}},
                                              {{Axes::cp, 2}, {Axes::dp, 2}},
                                              {{Axes::cp, 2}, {Axes::tp, 2}},
                                              {{Axes::tp, 2}, {Axes::cp, 2}},
                                              {{Axes::dp, 2}, {Axes::tp, 2}}})
        on_mesh(axes, [](const Mesh& mesh) {
            for (const SequenceLayout layout : layouts)
                for (const Index length : {1, 2, 7, 8}) {
                    const Sequences s = {3, length, layout};
                    Runs mine;
                    const Range batch = balanced_range(3, mesh.size(dp), mesh.rank(dp));
                    EXPECT_EQ(s.local_batch(mesh), batch);
                    for (Index b = batch.first; b < batch.end(); ++b)
                        for (Index i = 0; i < s.positions(mesh).size(); ++i)
                            mine.append({b * length + s.positions(mesh)[i], 1, 1});
                    EXPECT_EQ(s.rows(mesh, dp | cp).runs(mesh.rank(dp | cp)), mine);

                    const Range part = balanced_range(mine.size(), mesh.size(tp), mesh.rank(tp));
                    EXPECT_EQ(s.rows(mesh, dp | cp | tp).runs(mesh.rank(dp | cp | tp)),
                              mine.slice(part.first, part.count));
                }
        });
}

TEST(sequences, rows_cover_every_token_once) {
    on_every_world([](const Communicator& world) {
        for (const Axes axis : {dp, cp, tp}) {
            const Mesh mesh(world, {{axis, world.size()}});
            for (const SequenceLayout layout : layouts)
                for (const Index length : {0, 1, 3, 10}) {
                    const Partition rows = Sequences{2, length, layout, layout == SequenceLayout::striped ? 2 : 1}.rows(
                        mesh, dp | cp | tp);
                    std::vector<Runs> runs;
                    for (int rank = 0; rank < rows.ranks(); ++rank)
                        runs.push_back(rows.runs(rank));
                    EXPECT_FALSE(Partition::of_runs(2 * length, runs).overlaps());
                }
            EXPECT_THROW(Sequences({1, 4}).rows(mesh, dp | Axes::ep), ArgumentError);
        }
    });
}

TEST(sequences, positions_of_a_ring_are_a_partition_of_the_sequence) {
    for (const SequenceLayout layout : layouts) {
        const Sequences s = {1, 11, layout};
        for (int rank = 0; rank < 3; ++rank)
            EXPECT_EQ(s.positions_partition(3).runs(rank), s.positions(3, rank));
        EXPECT_EQ(s.positions_partition(3).size(), 11);
    }
}

} // namespace sequences_test
