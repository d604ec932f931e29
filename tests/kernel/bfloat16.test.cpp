#include <reigen/kernel/bfloat16.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace bfloat16_test {

using reigen::bfloat16;
using reigen::detail::round_to_bfloat16;

TEST(bfloat16, every_high_half_is_rounded_to_the_nearest_even) {
    for (std::uint32_t high = 0; high < 0x10000; ++high)
        for (std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
            const auto value = std::bit_cast<float>(high << 16 | low);
            if (std::isnan(value))
                continue;
            const bool up = low > 0x8000 || (low == 0x8000 && (high & 1));
            EXPECT_EQ(std::bit_cast<std::uint16_t>(round_to_bfloat16(value)), high + up) << high << ' ' << low;
        }
}

TEST(bfloat16, a_packet_is_rounded_as_each_of_its_numbers) {
    constexpr reigen::Index lanes = reigen::detail::lanes<float>;
    for (std::uint32_t high = 0; high < 0x10000; high += lanes)
        for (std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
            float numbers[lanes];
            bfloat16 rounded[lanes + 1];
            rounded[lanes] = bfloat16(7.0F);
            for (reigen::Index i = 0; i < lanes; ++i)
                numbers[i] = std::bit_cast<float>((high + std::uint32_t(i)) << 16 | low);
            reigen::detail::store<float>(rounded, reigen::detail::load<float>(numbers));
            for (reigen::Index i = 0; i < lanes; ++i)
                EXPECT_EQ(std::bit_cast<std::uint16_t>(rounded[i]),
                          std::bit_cast<std::uint16_t>(round_to_bfloat16(numbers[i])))
                    << high + std::uint32_t(i) << ' ' << low;
            EXPECT_EQ(float(rounded[lanes]), 7.0F);
        }
}

TEST(bfloat16, not_a_number_stays_one_with_its_sign) {
    for (std::uint32_t bits : {0x7fffffffU, 0x7f800001U, 0x7fc00000U, 0xffffffffU, 0xff800001U}) {
        const auto rounded = std::bit_cast<std::uint16_t>(round_to_bfloat16(std::bit_cast<float>(bits)));
        EXPECT_EQ(rounded & 0x7f80, 0x7f80) << bits;
        EXPECT_NE(rounded & 0x007f, 0) << bits;
        EXPECT_EQ(rounded >> 15, bits >> 31) << bits;
    }
}

TEST(bfloat16, what_exceeds_the_largest_becomes_infinite) {
    EXPECT_TRUE(std::isinf(float(round_to_bfloat16(std::numeric_limits<float>::max()))));
    EXPECT_EQ(float(round_to_bfloat16(-std::numeric_limits<float>::infinity())),
              -std::numeric_limits<float>::infinity());
}

} // namespace bfloat16_test
