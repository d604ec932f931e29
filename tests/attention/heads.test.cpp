#include "attention/ring_cases.hpp"

namespace heads_test {

using namespace ring_cases;

TEST(heads, are_where_the_matrix_has_them) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        for (const SequenceLayout layout : layouts) {
            const Sequences s = {3, 7, layout};
            const auto x = Matrix<double>::from_global(mesh, s.rows(mesh, dp | cp), 8,
                                                       [](Index i, Index j) { return double(100 * i + j); });
            const auto h = heads(x, s, 4);
            EXPECT_EQ(h.view().tokens, h.positions().size());
            for (Index b = 0; b < 3; ++b)
                for (Index t = 0; t < h.view().tokens; ++t)
                    for (Index head = 0; head < 2; ++head)
                        for (Index c = 0; c < 4; ++c)
                            EXPECT_EQ(h.view().at(b, t, head)[c],
                                      double(100 * (b * 7 + h.positions()[t]) + 4 * head + c));
        }
    });
}

TEST(heads, of_a_packed_projection_are_not_copied) {
    on_mesh({{Axes::tp, 2}}, [](const Mesh& mesh) {
        const Sequences s = {2, 3};
        const NamedBlocks blocks = NamedBlocks::heads({4, 2}, 4);
        const auto qkv = Matrix<float>::from_global(mesh, s.rows(mesh, dp | cp), blocks.partition(2),
                                                    [](Index i, Index j) { return float(100 * i + j); });
        const auto k = heads(block_view(qkv, blocks, "k"), s, 4);
        EXPECT_EQ(k.view().data, qkv.data() + 8);
        EXPECT_EQ(k.view().heads, 1);
        EXPECT_EQ(k.heads_of(1), std::vector<Index>{1});
        EXPECT_EQ(*k.view().at(1, 2, 0), float(100 * 5 + 16 + 4 * mesh.rank(tp)));
    });
}

TEST(heads, of_rows_or_columns_that_do_not_fit_are_refused) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh = ring_of(world);
        const Sequences s = {2, 7, SequenceLayout::zigzag};
        const auto x = Matrix<float>::zeros(mesh, s.rows(mesh, dp | cp), 8);
        EXPECT_THROW(heads(x, Sequences{2, 6, SequenceLayout::zigzag}, 4), ShapeError);
        EXPECT_THROW(heads(x, s, 3), ShapeError);
        EXPECT_THROW(heads(x, s, 0), ShapeError);
        const Sequences shorter = {7, 2, SequenceLayout::zigzag}; // as many tokens
        if (world.size() > 1) {
            EXPECT_THROW(heads(x, shorter, 4), ShapeError);
            EXPECT_THROW(heads(x, Sequences{2, 7, SequenceLayout::striped}, 4), ShapeError);
        }
    });
}

TEST(heads, of_a_column_major_matrix_are_refused) {
    const Mesh alone;
    Eigen::MatrixXd x = Eigen::MatrixXd::Zero(6, 8);
    EXPECT_THROW(heads(shard<split_rows(cp)>(alone, x, 6, 8), Sequences{2, 3}, 4), ArgumentError);
}

} // namespace heads_test
