#include <train_gpt/progress.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace progress_test {

using reigen::Index;
using train_gpt::Progress;
using train_gpt::ProgressPoint;

namespace {

ProgressPoint point(Index step, Index steps) {
    return {step, steps, 100, 2.5, 0.5 * double(step)};
}

std::string shown(int columns, Index steps) {
    std::ostringstream out;
    Progress progress(out, columns);
    for (Index step = 1; step <= steps; ++step)
        progress.show(point(step, steps));
    return out.str();
}

} // namespace

TEST(progress, a_line_has_loss_tokens_a_second_and_time_left) {
    EXPECT_EQ(train_gpt::progress_text(point(30, 120), 0), " 30/120  loss 2.5000    200 tokens/s  45 s left");
    EXPECT_EQ(train_gpt::progress_text(point(30, 120), 8).substr(0, 12), "[##------]  ");
}

TEST(progress, elsewhere_than_on_a_terminal_there_are_about_twenty_plain_lines) {
    const std::string text = shown(0, 200);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21); // the first step too
    EXPECT_NE(text.find("200/200"), std::string::npos);
}

TEST(progress, few_steps_have_one_line_each) {
    const std::string text = shown(0, 3);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(progress, a_terminal_has_one_line_that_fits) {
    for (const int columns : {60, 80, 200}) {
        const std::string text = shown(columns, 200);
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
        std::istringstream drawings(text);
        for (std::string drawing; std::getline(drawings, drawing, '\r');)
            EXPECT_LT(drawing.size(), std::size_t(columns) + 4); // and the three bytes that clear the rest
    }
}

} // namespace progress_test
