#include "support/words.hpp"

#include <support/mesh_option.hpp>

#include <support/program.hpp>

#include <gtest/gtest.h>

namespace mesh_option_test {

namespace {

std::string mesh(const std::string& text, int ranks) {
    const auto axes = examples::mesh_axes(text, ranks);
    return reigen::to_string(std::span(axes));
}

std::string complaint(const std::string& text, int ranks) {
    return words_of<examples::UsageError>([&] { examples::mesh_axes(text, ranks); });
}

} // namespace

TEST(mesh_option, axes_come_in_one_order_and_absent_ones_have_size_one) {
    EXPECT_EQ(mesh("tp=2,dp=3", 6), "dp=3 x cp=1 x tp=2");
    EXPECT_EQ(mesh("dp=1,cp=2,tp=2", 4), "dp=1 x cp=2 x tp=2");
}

TEST(mesh_option, tp_takes_the_ranks_that_are_left) {
    EXPECT_EQ(mesh("", 4), "dp=1 x cp=1 x tp=4");
    EXPECT_EQ(mesh("cp=2", 6), "dp=1 x cp=2 x tp=3");
    EXPECT_EQ(mesh("cp=4", 4), "dp=1 x cp=4 x tp=1");
}

TEST(mesh_option, sizes_that_do_not_make_the_ranks_are_refused) {
    EXPECT_NE(complaint("cp=2,tp=2", 1).find("is for 4 ranks, there is 1"), std::string::npos);
    EXPECT_NE(complaint("cp=3", 4).find("is for 3 ranks, there are 4"), std::string::npos);
    EXPECT_NE(complaint("tp=2", 4), "");
}

TEST(mesh_option, what_is_no_mesh_is_refused_with_its_wrong_part) {
    for (const std::string part : {"xp=2", "cp", "cp=", "cp=0", "cp=-1", "cp=2x", "pp=1"})
        EXPECT_NE(complaint("tp=1," + part, 1).find("'" + part + "'"), std::string::npos) << part;
    EXPECT_NE(complaint("cp=2,cp=2", 4).find("twice"), std::string::npos);
}

} // namespace mesh_option_test
