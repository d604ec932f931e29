#include <reigen/layout/rules.hpp>

#include <gtest/gtest.h>

namespace placement_test {

using namespace reigen;

namespace {
constexpr Axes R = dp | cp;
constexpr Placement rows = split_rows(R);
constexpr Placement column_weight = split_cols(tp);
constexpr Placement row_weight = split_rows(tp);
} // namespace

// Each line of the table in rules.hpp.

TEST(placement, column_partitioned_product_and_its_gradients) {
    static_assert(can_multiply(rows, column_weight));
    static_assert(product(rows, column_weight) == Placement{R, tp, {}});
    static_assert(product(Placement{R, tp, {}}, transpose(column_weight)) == Placement{R, {}, tp});
    static_assert(product(transpose(rows), Placement{R, tp, {}}) == Placement{{}, tp, R});
    static_assert(column_sums(Placement{R, tp, {}}) == Placement{{}, tp, R});
}

TEST(placement, row_partitioned_product_and_its_gradients) {
    static_assert(can_multiply(Placement{R, tp, {}}, row_weight));
    static_assert(product(Placement{R, tp, {}}, row_weight) == Placement{R, {}, tp});
    static_assert(summed(Placement{R, {}, tp}) == rows);
    static_assert(product(rows, transpose(row_weight)) == Placement{R, tp, {}});
    static_assert(product(transpose(Placement{R, tp, {}}), rows) == Placement{tp, {}, R});
    static_assert(column_sums(rows) == partial(R));
}

TEST(placement, embedding_and_head) {
    static_assert(can_look_up(rows, row_weight));
    static_assert(lookup(rows, row_weight) == Placement{R, {}, tp});
    static_assert(product(rows, transpose(row_weight)) == Placement{R, tp, {}});
    static_assert(product(transpose(Placement{R, tp, {}}), rows) == Placement{tp, {}, R});
    static_assert(!can_look_up(split_rows(tp), row_weight));
    static_assert(!can_look_up(partial(R), row_weight));
    static_assert(!can_look_up(rows, split_cols(cp)));
}

TEST(placement, with_sequence_parallelism_row_parameters_are_partial_over_tp_too) {
    static_assert(column_sums(split_rows(R | tp)) == partial(R | tp));
}

TEST(placement, a_product_needs_operands_that_fit) {
    static_assert(!can_multiply(rows, row_weight), "the shared axis is cut on one side only");
    static_assert(!can_multiply(split_rows(tp), column_weight), "tp would cut rows and columns");
    static_assert(!can_multiply(partial(tp), replicated));
    static_assert(!can_multiply(replicated, partial(tp)));
    static_assert(!can_multiply(Placement{tp, tp, {}}, row_weight), "no such placement");
}

TEST(placement, sums_and_rows_are_not_applied_to_a_partial) {
    static_assert(can_add(partial(tp), partial(tp)));
    static_assert(!can_add(partial(tp), replicated));
    static_assert(!can_add(rows, replicated));
    static_assert(can_apply_row(Placement{R, tp, {}}, split_cols(tp)));
    static_assert(!can_apply_row(Placement{R, tp, {}}, replicated));
    static_assert(!can_apply_row(rows, split_rows(R)));
    static_assert(!can_apply_row(partial(tp), replicated));
    static_assert(!can_apply_row(replicated, partial(tp)));
    static_assert(!can_sum(partial(tp)));
    static_assert(row_sums(Placement{R, tp, {}}) == Placement{R, {}, tp});
    static_assert(shared_sums(Placement{R, tp, {}}) == partial(R | tp));
}

TEST(placement, an_accumulator_has_the_products_placement_or_that_of_its_sum) {
    constexpr Placement p = {R, {}, tp};
    static_assert(can_accumulate(p, p));
    static_assert(can_accumulate(p, rows));
    static_assert(can_accumulate(p, split_rows(R | tp)));
    static_assert(can_accumulate(p, Placement{R, tp, {}}));
    static_assert(!can_accumulate(p, replicated));
    static_assert(!can_accumulate(p, Placement{{}, {}, tp}));
    static_assert(!can_accumulate(rows, p));
}

TEST(placement, is_one_of_rows_columns_or_partial_for_each_axis) {
    static_assert(is_valid(Placement{dp, tp, cp}));
    static_assert(!is_valid(Placement{tp, tp, {}}));
    static_assert(!is_valid(Placement{tp, {}, tp}));
    static_assert(!is_valid(Placement{{}, tp, dp | tp}));
    static_assert((split_rows(R) | partial(tp)) == Placement{R, {}, tp});
    EXPECT_EQ(to_string(Placement{R, tp, {}}), "{dp|cp; tp; }");
    EXPECT_EQ(to_string(partial(tp)), "{; ; tp}");
    EXPECT_EQ(to_string(replicated), "replicated");
}

} // namespace placement_test
