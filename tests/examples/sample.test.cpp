#include <train_gpt/sample.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace sample_test {

using train_gpt::pick;

TEST(sample, a_byte_is_picked_as_often_as_its_probability) {
    const std::array<double, 3> logits = {std::log(1.0), std::log(2.0), std::log(5.0)};
    std::array<int, 3> counts{};
    for (int i = 0; i < 800; ++i)
        ++counts[std::size_t(pick(logits, 1, (i + 0.5) / 800))];
    EXPECT_EQ(counts, (std::array<int, 3>{100, 200, 500}));
}

TEST(sample, temperature_sharpens_and_zero_takes_the_first_of_the_largest) {
    const std::array<double, 4> logits = {0, 3, 3, 1};
    for (const double uniform : {0.0, 0.5, 0.999999})
        EXPECT_EQ(pick(logits, 0, uniform), 1);
    EXPECT_EQ(pick(logits, 1e-3, 0.25), 1);
    EXPECT_EQ(pick(logits, 1e-3, 0.75), 2);
}

TEST(sample, large_logits_and_the_ends_of_the_interval_are_safe) {
    const std::array<double, 3> logits = {1e4, -1e4, 1e4};
    EXPECT_EQ(pick(logits, 1, 0), 0);
    EXPECT_EQ(pick(logits, 1, 0.9999999999999999), 2);
}

TEST(sample, control_characters_do_not_reach_the_terminal) {
    EXPECT_EQ(train_gpt::printable("a\x1b[2J\tb\n\x7f\xc3\xa4"), "a?[2J\tb\n?\xc3\xa4");
}

namespace {

/// Says that the byte after a text is its length modulo 256, and keeps the longest text it saw.
struct CountingTraining : train_gpt::Training {
    std::size_t longest = 0;

    std::vector<double> next_logits(std::string_view text) override {
        longest = std::max(longest, text.size());
        std::vector<double> logits(256, 0);
        logits[text.size()] = 1000;
        return logits;
    }
    train_gpt::StepResult step(reigen::Index) override { return {}; }
    double held_out_loss() override { return 0; }
    void print_ledger(std::ostream&) const override {}
    std::vector<reigen::NamedAudit> audit(reigen::Index, reigen::Index) override { return {}; }
    std::vector<reigen::NonFinite> nonfinite() const override { return {}; }
    reigen::Index parameters() const override { return 0; }
};

} // namespace

TEST(sample, each_byte_sees_the_text_before_it_as_far_as_the_context_reaches) {
    CountingTraining training;
    train_gpt::Options options;
    options.context = 5;
    options.sample = 4;
    EXPECT_EQ(continue_text(training, "abc", options), "\x03\x04\x05\x05");
    EXPECT_EQ(training.longest, 5U);
}

} // namespace sample_test
