#include <reigen/core/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace random_test {

using reigen::Index;
using reigen::RandomStream;

// Known answers published with the Random123 library.
TEST(random, philox_gives_the_published_answers) {
    using Words = std::array<std::uint32_t, 4>;
    EXPECT_EQ(reigen::philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    const std::uint32_t ones = 0xffffffff;
    EXPECT_EQ(reigen::philox4x32({ones, ones, ones, ones}, {ones, ones}),
              (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(reigen::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(random, streams_differ_by_every_identifier_and_by_their_order) {
    std::set<std::uint32_t> first_words;
    for (const RandomStream& stream : {RandomStream(1), RandomStream(2), RandomStream(1, 0), RandomStream(1, 1),
                                       RandomStream(1, 0, 1), RandomStream(1, 1, 0), RandomStream(1, 2, 3)})
        first_words.insert(stream.words(0)[0]);
    EXPECT_EQ(first_words.size(), 7U);
}

TEST(random, the_upper_half_of_an_index_counts) {
    const RandomStream stream(7);
    EXPECT_NE(stream.words(1), stream.words(1 + (Index(1) << 32)));
}

TEST(random, uniform_and_normal_have_their_moments) {
    const RandomStream stream(3, 1);
    const Index n = 20000;
    double uniform_sum = 0, normal_sum = 0, normal_squares = 0, normal_fourths = 0;
    for (Index i = 0; i < n; ++i) {
        const double u = stream.uniform(i);
        const double z = stream.normal(i);
        ASSERT_TRUE(u >= 0 && u < 1);
        uniform_sum += u;
        normal_sum += z;
        normal_squares += z * z;
        normal_fourths += z * z * z * z;
    }
    const double five_sigma = 5 / std::sqrt(double(n));
    EXPECT_NEAR(uniform_sum / double(n), 0.5, five_sigma * std::sqrt(1.0 / 12));
    EXPECT_NEAR(normal_sum / double(n), 0, five_sigma);
    EXPECT_NEAR(normal_squares / double(n), 1, five_sigma * std::sqrt(2.0));
    EXPECT_NEAR(normal_fourths / double(n), 3, five_sigma * std::sqrt(96.0));
}

} // namespace random_test
