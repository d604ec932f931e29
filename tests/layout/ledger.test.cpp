#include "layout/values.hpp"

#include <reigen/layout/ledger.hpp>
#include <reigen/layout/sequences.hpp>

#include <gtest/gtest.h>

namespace ledger_test {

using namespace reigen;

TEST(ledger, describes_placement_global_shape_and_what_each_rank_holds) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        EXPECT_EQ(describe(Sharded < float, split_rows(dp) | split_cols(tp) > (mesh, 5, 8)),
                  "5x8 {dp; tp; }: rows over dp=2, columns over tp=2\n"
                  "  rank 0   3x4   rows 0-2   columns 0-3\n"
                  "  rank 1   3x4   rows 0-2   columns 4-7\n"
                  "  rank 2   2x4   rows 3-4   columns 0-3\n"
                  "  rank 3   2x4   rows 3-4   columns 4-7\n");
        EXPECT_EQ(describe(Sharded < float, split_cols(tp) | partial(dp) > (mesh, 2, 3)),
                  "2x3 {; tp; dp}: columns over tp=2, summed over dp=2\n"
                  "  rank 0 2   2x2   rows 0-1   columns 0-1\n"
                  "  rank 1 3   2x1   rows 0-1   columns 2\n");
        EXPECT_EQ(describe(Sharded<float, replicated>(mesh, 2, 3)), "2x3 replicated: on every rank\n"
                                                                    "  rank 0 1 2 3   2x3   rows 0-1   columns 0-2\n");
    });
}

TEST(ledger, many_runs_are_cut_short) {
    on_mesh({{Axes::cp, 2}}, [](const Mesh& mesh) {
        const Partition rows = Sequences{9, 8, SequenceLayout::zigzag}.rows(mesh, cp);
        const std::string text = describe(Sharded<float, split_rows(cp)>(mesh, rows, 1));
        EXPECT_NE(text.find("rows 0-1 6-9 14-17 ... (10 runs)"), std::string::npos) << text;
    });
}

TEST(ledger, lists_tensors_and_parameters_by_name) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        Sharded<float, split_cols(tp)> w(mesh, 2, 4);
        Sharded<float, split_cols(tp) | partial(dp)> dw(mesh, 2, 4);
        const Sharded<float, replicated> x(mesh, 1, 2);
        ShapeLedger ledger;
        ledger.add("x", x);
        ledger.add(parameter_view("w", w, dw));
        EXPECT_EQ(ledger.to_string(), "x  " + describe(x) + "w (gradient summed over dp=2)  " + describe(w));
    });
}

} // namespace ledger_test
