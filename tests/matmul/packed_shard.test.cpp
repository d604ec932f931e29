#include "matmul/dense.hpp"
#include "support/bits.hpp"
#include "support/words.hpp"

#include <reigen/layout/redistribute.hpp>
#include <reigen/matmul/packed_shard.hpp>

#include <gtest/gtest.h>

namespace packed_shard_test {

using namespace dense_products;
using namespace reigen;

namespace {

constexpr Axes R = dp | cp;

/// What `matmul` gives with the packed weight is, bit for bit, what it gives with the weight, and right.
template <class S, Placement X, Placement W>
void check(const Mesh& mesh, Index m, Index k, Index n) {
    const Dense x = integers(m, k, 1), w = integers(k, n, 2);
    const auto sx = sharded<X, S>(mesh, x);
    auto sw = sharded<W, S>(mesh, w);
    const auto want = matmul(sx, sw);
    const PackedShard packed(std::move(sw));
    const auto y = matmul(sx, packed);
    static_assert(placement_of<decltype(y)> == placement_of<decltype(want)>);
    expect_equal(y, times(x, w));
    EXPECT_EQ(y.row_partition(), want.row_partition());
    EXPECT_EQ(y.col_partition(), want.col_partition());
    EXPECT_TRUE(same_bits(y.strided(), want.strided()));
    expect_equal(packed.unpack(), w);
}

} // namespace

TEST(packed_shard, multiplies_as_the_weight_on_every_number_of_ranks) {
    on_every_world([](const Communicator& world) {
        const Mesh mesh(world, {{Axes::tp, world.size()}});
        for (Index m : {0, 1, 4, 30}) {
            check<float, split_rows(R), split_cols(tp)>(mesh, m, 12, 37);
            check<double, split_rows(R) | split_cols(tp), split_rows(tp)>(mesh, m, 7, 5);
            check<bfloat16, split_rows(R) | split_cols(tp), split_rows(tp)>(mesh, m, 3, 2);
        }
        check<float, replicated, replicated>(mesh, 3, 0, 2);
    });
}

TEST(packed_shard, a_weight_that_is_given_away_is_freed) {
    on_mesh({{Axes::tp, 2}}, [](const Mesh& mesh) {
        auto w = sharded<split_cols(tp), float>(mesh, integers(64, 64, 1));
        const Index before = memory_account()->total().current;
        const PackedShard packed(std::move(w));
        EXPECT_EQ(memory_account()->total().current, before);
    });
}

TEST(packed_shard, shapes_that_do_not_fit_throw_on_every_rank) {
    on_mesh({{Axes::tp, 2}}, [](const Mesh& mesh) {
        const auto x = sharded<replicated, float>(mesh, integers(4, 12, 1));
        const PackedShard packed(sharded<split_cols(tp), float>(mesh, integers(10, 8, 2)));
        EXPECT_EQ(words_of<ShapeError>([&] { matmul(x, packed); }), "matmul: a is 4x12, b is 10x8");
    });
}

} // namespace packed_shard_test
