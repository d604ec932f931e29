#include <train_gpt/batch.hpp>
#include <train_gpt/schedule.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace batch_test {

using reigen::Index;
using reigen::Runs;
using train_gpt::cut;
using train_gpt::Starts;
using Tokens = std::vector<std::int32_t>;

namespace {

std::string ascending_bytes(int size) {
    std::string text(std::size_t(size), ' ');
    std::iota(text.begin(), text.end(), char(0));
    return text;
}

} // namespace

TEST(batch, a_target_is_the_byte_after_its_input) {
    const std::string text = ascending_bytes(100);
    const Runs rows = Runs::range(0, 8);
    EXPECT_EQ(cut(text, {10, 50}, 4, rows), (Tokens{10, 11, 12, 13, 50, 51, 52, 53}));
    EXPECT_EQ(cut(text, {10, 50}, 4, rows, 1), (Tokens{11, 12, 13, 14, 51, 52, 53, 54}));
}

TEST(batch, a_rank_gets_the_rows_it_holds_in_their_order) {
    const std::string text = ascending_bytes(100);
    const Runs some_of_both_sequences = {{1, 1, 2}, {4, 1, 1}, {7, 1, 1}};
    EXPECT_EQ(cut(text, {10, 50}, 4, some_of_both_sequences), (Tokens{11, 12, 50, 53}));
    EXPECT_EQ(cut(text, {10, 50}, 4, Runs()), Tokens());
}

TEST(batch, bytes_above_127_are_tokens_above_127) {
    EXPECT_EQ(cut("\x80\xff", {0}, 2, Runs::range(0, 2)), (Tokens{128, 255}));
}

TEST(batch, random_windows_fit_in_the_text_and_reach_both_ends) {
    const std::string text(20, 'x');
    Starts all;
    for (Index step = 0; step < 40; ++step)
        for (const Index start : train_gpt::random_starts(text, 3, 16, 1, step, 0))
            all.push_back(start);
    EXPECT_EQ(*std::min_element(all.begin(), all.end()), 0);
    EXPECT_EQ(*std::max_element(all.begin(), all.end()), 3); // 16 inputs from 3, the last target is byte 19
}

TEST(batch, windows_differ_between_steps_micro_batches_and_seeds_and_repeat_for_the_same) {
    const std::string text(100000, 'x');
    const auto starts = train_gpt::random_starts(text, 4, 16, 1, 2, 3);
    EXPECT_EQ(starts, train_gpt::random_starts(text, 4, 16, 1, 2, 3));
    EXPECT_NE(starts, train_gpt::random_starts(text, 4, 16, 9, 2, 3));
    EXPECT_NE(starts, train_gpt::random_starts(text, 4, 16, 1, 9, 3));
    EXPECT_NE(starts, train_gpt::random_starts(text, 4, 16, 1, 2, 9));
}

TEST(batch, held_out_windows_do_not_overlap_and_stay_inside) {
    for (const Index size : {17, 33, 40, 1000}) {
        const auto starts = train_gpt::even_starts(std::string(std::size_t(size), 'x'), 5, 16);
        EXPECT_EQ(Index(starts.size()), std::min<Index>(5, (size - 1) / 16));
        EXPECT_LE(starts.back() + 16, size - 1);
        for (std::size_t i = 1; i < starts.size(); ++i)
            EXPECT_GE(starts[i] - starts[i - 1], 16);
    }
}

TEST(schedule, rises_over_the_warm_up_and_falls_to_a_tenth) {
    const train_gpt::Schedule rate = {1.0, 4, 104};
    EXPECT_DOUBLE_EQ(rate(0), 0.2);
    EXPECT_DOUBLE_EQ(rate(3), 0.8);
    EXPECT_DOUBLE_EQ(rate(4), 1.0);
    EXPECT_NEAR(rate(54), 0.55, 1e-12);
    EXPECT_NEAR(rate(104), 0.1, 1e-12);
    for (Index step = 5; step < 104; ++step)
        EXPECT_LT(rate(step), rate(step - 1));
}

TEST(schedule, more_warm_up_than_steps_only_rises) {
    const train_gpt::Schedule rate = {1.0, 100, 10};
    for (Index step = 1; step < 10; ++step)
        EXPECT_GT(rate(step), rate(step - 1));
}

} // namespace batch_test
