#include "support/words.hpp"

#include <train_gpt/corpus.hpp>

#include <support/program.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace corpus_test {

using train_gpt::byte_entropy;
using train_gpt::Corpus;

namespace {

std::string temporary_file(const std::string& name, const std::string& content) {
    const auto path = std::filesystem::temp_directory_path() / ("reigen_corpus_" + name);
    std::ofstream(path) << content;
    return path.string();
}

std::string message_of(const std::string& path) {
    return words_of<examples::UsageError>([&] { train_gpt::load_text(path); });
}

} // namespace

TEST(corpus, entropy_is_zero_for_one_byte_and_the_logarithm_for_equal_frequencies) {
    EXPECT_EQ(byte_entropy("aaaaaaa"), 0);
    EXPECT_NEAR(byte_entropy("abcdabcd"), std::log(4.0), 1e-15);
    EXPECT_NEAR(byte_entropy("aab"), -2.0 / 3 * std::log(2.0 / 3) - 1.0 / 3 * std::log(1.0 / 3), 1e-15);
    EXPECT_NEAR(byte_entropy("\xff\xfe"), std::log(2.0), 1e-15);
}

TEST(corpus, the_last_tenth_is_held_out_and_the_parts_make_the_whole) {
    std::string text(1000, 'x');
    for (std::size_t i = 0; i < text.size(); ++i)
        text[i] = char('a' + i % 26);
    const Corpus corpus(text, 16);
    EXPECT_EQ(corpus.training().size(), 900U);
    EXPECT_EQ(std::string(corpus.training()) + std::string(corpus.held_out()), text);
}

TEST(corpus, each_part_has_at_least_one_window) {
    const Corpus smallest(std::string(34, 'x'), 16);
    EXPECT_EQ(smallest.training().size(), 17U);
    EXPECT_EQ(smallest.held_out().size(), 17U);
    EXPECT_THROW(Corpus(std::string(33, 'x'), 16), examples::UsageError);
    EXPECT_THROW(Corpus("", 1), examples::UsageError);
}

TEST(corpus, what_cannot_be_read_is_said) {
    EXPECT_NE(message_of("/no/such/file").find("cannot read /no/such/file"), std::string::npos);
    EXPECT_NE(message_of("/").find("is a folder"), std::string::npos);
    EXPECT_NE(message_of(temporary_file("empty", "")).find("is empty"), std::string::npos);
}

TEST(corpus, bytes_come_as_they_are) {
    const std::string content("a\r\n\0\xff z\n", 8);
    EXPECT_EQ(train_gpt::load_text(temporary_file("bytes", content)), content);
}

TEST(corpus, the_headers_are_the_same_text_each_time) {
    const std::string text = train_gpt::load_text("");
    EXPECT_NE(text.find("class RandomStream"), std::string::npos);
    EXPECT_LT(text.find("class Buffer"), text.find("class RandomStream"));
    EXPECT_EQ(text, train_gpt::load_text(""));
}

} // namespace corpus_test
