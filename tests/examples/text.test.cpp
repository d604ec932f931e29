#include <support/memory_report.hpp>
#include <support/text_table.hpp>
#include <support/units.hpp>

#include <gtest/gtest.h>

#include <sstream>

namespace text_test {

TEST(text, sizes_and_times_are_written_with_their_units) {
    EXPECT_EQ(examples::bytes_text(0), "0 B");
    EXPECT_EQ(examples::bytes_text(1023), "1023 B");
    EXPECT_EQ(examples::bytes_text(1536), "1.5 KiB");
    EXPECT_EQ(examples::bytes_text(reigen::Index(5) << 30), "5.0 GiB");
    EXPECT_EQ(examples::count_text(123), "123");
    EXPECT_EQ(examples::count_text(-123456), "-123,456");
    EXPECT_EQ(examples::count_text(1234567), "1,234,567");
    EXPECT_EQ(examples::duration_text(7.4), "7 s");
    EXPECT_EQ(examples::duration_text(65), "1:05");
    EXPECT_EQ(examples::duration_text(7384), "2:03:04");
    EXPECT_EQ(examples::fixed_text(2.345, 1), "2.3");
    EXPECT_EQ(examples::scientific_text(1.23e-7), "1.2e-07");
}

TEST(text, a_table_aligns_names_to_the_left_and_numbers_to_the_right) {
    examples::TextTable table({"what", "rank 0"});
    table.add({"weights", "1 B"});
    table.add({"all"});
    std::ostringstream out;
    out << table;
    EXPECT_EQ(out.str(), "  what     rank 0\n"
                         "  weights     1 B\n"
                         "  all\n");
    EXPECT_ANY_THROW(table.add({"a", "b", "c"}));
}

TEST(text, memory_is_listed_by_use_and_by_the_axes_that_split_it) {
    using reigen::MemoryUse;
    examples::MemoryReport report;
    report.lines = {{{MemoryUse::weights, reigen::Axes::none}, {1024, 1024}},
                    {{MemoryUse::weights, reigen::tp}, {2048, 4096}},
                    {{MemoryUse::messages, reigen::Axes::none}, {0, 8}}};
    report.total_peaks = {3072, 5120};
    std::ostringstream out;
    out << report;
    EXPECT_EQ(out.str(), "  memory at its peak       rank 0   rank 1\n"
                         "  weights, not split      1.0 KiB  1.0 KiB\n"
                         "  weights, split over tp  2.0 KiB  4.0 KiB\n"
                         "  messages                    0 B      8 B\n"
                         "  all together            3.0 KiB  5.0 KiB\n");
}

} // namespace text_test
