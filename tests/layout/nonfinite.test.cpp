#include "support/worlds.hpp"

#include <reigen/layout/nonfinite.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace nonfinite_test {

namespace {

using namespace reigen;

constexpr double infinity = std::numeric_limits<double>::infinity();

template <Placement Where>
void put(Sharded<double, Where>& x, Index row, Index col, double value) {
    const auto i = x.row_runs().find(row);
    const auto j = x.col_runs().find(col);
    if (i && j)
        x.local()(*i, *j) = value;
}

int holder(const Partition& partition, Index item) {
    int rank = 0;
    while (!partition.runs(rank).find(item))
        ++rank;
    return rank;
}

} // namespace

TEST(nonfinite, nothing_is_found_in_finite_tensors) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        auto x = Sharded<double, split_cols(tp)>::zeros(mesh, 3, 5);
        put(x, 0, 0, std::numeric_limits<double>::max());
        put(x, 2, 4, std::numeric_limits<double>::denorm_min());
        NonFiniteSearch search(mesh);
        search.add("x", x);
        EXPECT_TRUE(search.found().empty());
    });
}

TEST(nonfinite, tensor_rank_and_global_index_are_told_on_every_rank) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        auto x = Sharded<double, split_cols(tp)>::zeros(mesh, 3, 5);
        auto y = Sharded<double, split_rows(tp)>::zeros(mesh, 7, 2);
        put(x, 2, 1, -infinity);
        put(x, 1, 4, infinity);
        put(y, 6, 1, std::numeric_limits<double>::quiet_NaN());
        NonFiniteSearch search(mesh);
        search.add("x", x);
        search.add("y", y);
        const auto found = search.found();
        const bool apart = holder(x.col_partition(), 1) != holder(x.col_partition(), 4);
        ASSERT_EQ(found.size(), apart ? 3u : 2u);
        const NonFinite& first = found.front();
        EXPECT_EQ(first.tensor, "x");
        EXPECT_EQ(first.rank, holder(x.col_partition(), apart ? 1 : 4));
        EXPECT_EQ(first.row, apart ? 2 : 1);
        EXPECT_EQ(first.col, apart ? 1 : 4);
        EXPECT_EQ(first.value, apart ? -infinity : infinity);
        const NonFinite& last = found.back();
        EXPECT_EQ(last.tensor, "y");
        EXPECT_EQ(last.rank, holder(y.row_partition(), 6));
        EXPECT_EQ(last.elements, 1);
        EXPECT_EQ(last.row, 6);
        EXPECT_EQ(last.col, 1);
        EXPECT_TRUE(std::isnan(last.value));
        EXPECT_EQ(to_string(last), concat("y: 1 element on rank ", last.rank, ", the first nan at row 6, column 1"));
    });
}

TEST(nonfinite, parameters_are_searched_with_their_gradients) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        auto value = Sharded<float, split_rows(tp)>::zeros(mesh, 6, 2);
        auto gradient = Sharded<float, split_rows(tp)>::zeros(mesh, 6, 2);
        if (const auto i = gradient.row_runs().find(4))
            gradient.local()(*i, 0) = gradient.local()(*i, 1) = std::numeric_limits<float>::infinity();
        NonFiniteSearch search(mesh);
        search.add(std::vector{parameter_view("w", value, gradient)});
        const auto found = search.found();
        ASSERT_EQ(found.size(), 1u);
        EXPECT_EQ(found[0].tensor, "w.gradient");
        EXPECT_EQ(found[0].elements, 2);
        EXPECT_EQ(found[0].row, 4);
    });
}

} // namespace nonfinite_test
