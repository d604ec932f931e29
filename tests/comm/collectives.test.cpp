#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace collectives_test {

namespace {

const std::vector<Index> counts = {0, 1, 2, 5, 7, 64, 1000, 5003};

template <class T, class Combine>
std::vector<T> combined(int ranks, Index count, Combine combine) {
    std::vector<T> result = small_values<T>(0, count);
    for (int r = 1; r < ranks; ++r)
        for (Index i = 0; i < count; ++i)
            result[std::size_t(i)] = T(float(combine(int(float(result[std::size_t(i)])), small_value(r, i))));
    return result;
}

template <class T, class Combine>
void expect_all_reduce(const Communicator& world, Index count, Reduction reduction, Combine combine) {
    auto values = small_values<T>(world.rank(), count);
    world.all_reduce(values, reduction);
    EXPECT_EQ(values, (combined<T>(world.size(), count, combine)))
        << to_string(reigen::data_type<T>()) << " x " << count << ", reduction " << int(reduction);
}

} // namespace

TEST(collectives, all_reduce_combines_every_type_at_every_size) {
    on_every_backend([](const Communicator& world) {
        for_each_type([&]<class T>() {
            for (const Index count : counts) {
                expect_all_reduce<T>(world, count, Reduction::sum, [](int a, int b) { return a + b; });
                expect_all_reduce<T>(world, count, Reduction::max, [](int a, int b) { return std::max(a, b); });
                expect_all_reduce<T>(world, count, Reduction::min, [](int a, int b) { return std::min(a, b); });
            }
        });
    });
}

TEST(collectives, sums_have_the_bits_of_a_loop_in_rank_order_at_every_size) {
    on_every_backend([](const Communicator& world) {
        for (const Index count : {1, 3, 100, 1023, 1025, 4000, 20000}) {
            auto want = wild_values<float>(0, count);
            for (int r = 1; r < world.size(); ++r) {
                const auto term = wild_values<float>(r, count);
                for (std::size_t i = 0; i < want.size(); ++i)
                    want[i] += term[i];
            }
            auto values = wild_values<float>(world.rank(), count);
            world.all_reduce(values);
            EXPECT_TRUE(same_bits(values, want)) << count << " elements";

            const std::vector<Index> whole(std::size_t(world.size()), count);
            std::vector<float> repeated;
            for (int r = 0; r < world.size(); ++r)
                for (const float value : wild_values<float>(world.rank(), count))
                    repeated.push_back(value);
            std::vector<float> mine(want.size());
            world.reduce_scatter(repeated, mine, Reduction::sum, whole);
            EXPECT_TRUE(same_bits(mine, want)) << count << " elements, scattered";
        }
    });
}

// pytorch#170073, TransformerEngine#1761
TEST(collectives, bfloat16_is_summed_in_float_and_rounded_once) {
    on_every_backend([](const Communicator& world) {
        std::vector<bfloat16> values(9, bfloat16(world.rank() == 0 ? 256.0F : 1.0F));
        world.all_reduce(values);
        const bfloat16 want(256.0F + float(world.size() - 1));
        for (const bfloat16 value : values)
            EXPECT_EQ(float(value), float(want));
    });
}

TEST(collectives, a_nan_stays_under_max_and_min) {
    on_every_backend([](const Communicator& world) {
        for (const Reduction reduction : {Reduction::max, Reduction::min})
            for (int owner = 0; owner < world.size(); ++owner) {
                std::vector<float> values = {1, world.rank() == owner ? std::numeric_limits<float>::quiet_NaN() : 2, 3};
                world.all_reduce(values, reduction);
                EXPECT_EQ(values[0], 1);
                EXPECT_TRUE(std::isnan(values[1]));
                EXPECT_EQ(values[2], 3);
            }
    });
}

TEST(collectives, integer_sums_wrap_around) {
    on_every_backend([](const Communicator& world) {
        std::vector<std::int32_t> values = {world.rank() == 0 ? std::numeric_limits<std::int32_t>::max() : 1};
        world.all_reduce(values);
        EXPECT_EQ(values[0], std::int32_t(std::uint32_t(std::numeric_limits<std::int32_t>::max()) +
                                          std::uint32_t(world.size() - 1)));
    });
}

TEST(collectives, all_gather_puts_uneven_and_empty_parts_in_rank_order) {
    on_every_backend([](const Communicator& world) {
        for_each_type([&]<class T>() {
            const auto parts = uneven_parts(world.size());
            std::vector<T> want;
            for (int r = 0; r < world.size(); ++r)
                for (const T value : small_values<T>(r, parts[std::size_t(r)]))
                    want.push_back(value);
            std::vector<T> all(std::size_t(total(parts)), T(99));
            world.all_gather(small_values<T>(world.rank(), parts[std::size_t(world.rank())]), all, parts);
            EXPECT_EQ(all, want);
        });
    });
}

TEST(collectives, all_gather_takes_equal_parts_without_their_sizes_and_works_in_place) {
    on_every_backend([](const Communicator& world) {
        const Index each = 1500;
        std::vector<float> want;
        for (int r = 0; r < world.size(); ++r)
            for (const float value : small_values<float>(r, each))
                want.push_back(value);
        std::vector<float> all(want.size(), -1);
        world.all_gather(small_values<float>(world.rank(), each), all);
        EXPECT_EQ(all, want);

        std::vector<float> in_place(want.size(), -1);
        const auto own = std::span(in_place).subspan(std::size_t(each * world.rank()), std::size_t(each));
        std::ranges::copy(small_values<float>(world.rank(), each), own.begin());
        world.all_gather(own, in_place);
        EXPECT_EQ(in_place, want);
    });
}

TEST(collectives, reduce_scatter_leaves_each_rank_the_sum_of_its_uneven_or_empty_part) {
    on_every_backend([](const Communicator& world) {
        for_each_type([&]<class T>() {
            const auto parts = uneven_parts(world.size());
            const auto sums = combined<T>(world.size(), total(parts), [](int a, int b) { return a + b; });
            const auto first = sums.begin() + first_of(parts, world.rank());
            const Index mine = parts[std::size_t(world.rank())];
            std::vector<T> values(std::size_t(mine), T(99));
            world.reduce_scatter(small_values<T>(world.rank(), total(parts)), values, Reduction::sum, parts);
            EXPECT_EQ(values, std::vector<T>(first, first + mine));
        });
    });
}

TEST(collectives, reduce_scatter_of_equal_parts_may_keep_its_part_where_it_lies) {
    on_every_backend([](const Communicator& world) {
        const Index each = 700;
        const auto sums = combined<double>(world.size(), each * world.size(), [](int a, int b) { return a + b; });
        auto all = small_values<double>(world.rank(), each * world.size());
        const auto own = std::span(all).subspan(std::size_t(each * world.rank()), std::size_t(each));
        world.reduce_scatter(all, own);
        EXPECT_TRUE(std::equal(own.begin(), own.end(), sums.begin() + each * world.rank()));
    });
}

// vllm#2528: a root is counted in its group
TEST(collectives, broadcast_gives_all_what_each_root_has) {
    on_every_backend([](const Communicator& world) {
        for (int root = 0; root < world.size(); ++root)
            for (const Index count : counts) {
                auto values = small_values<std::int32_t>(world.rank(), count);
                world.broadcast(values, root);
                EXPECT_EQ(values, small_values<std::int32_t>(root, count)) << "root " << root;
            }
    });
}

TEST(collectives, all_to_all_exchanges_uneven_parts_and_keeps_a_ranks_own) {
    on_every_backend([](const Communicator& world) {
        const auto part = [](int from, int to) { return Index((3 * from + 2 * to) % 5); }; // some are 0
        const auto value = [](int from, int to, Index i) { return float(100 * from + 10 * to) + float(i); };
        std::vector<Index> out_parts;
        std::vector<Index> in_parts;
        std::vector<float> out;
        std::vector<float> want;
        for (int peer = 0; peer < world.size(); ++peer) {
            out_parts.push_back(part(world.rank(), peer));
            in_parts.push_back(part(peer, world.rank()));
            for (Index i = 0; i < out_parts.back(); ++i)
                out.push_back(value(world.rank(), peer, i));
            for (Index i = 0; i < in_parts.back(); ++i)
                want.push_back(value(peer, world.rank(), i));
        }
        std::vector<float> in(want.size(), -1);
        world.all_to_all(out, out_parts, in, in_parts);
        EXPECT_EQ(in, want);
    });
}

TEST(collectives, a_barrier_is_passed_only_when_all_have_come) {
    const auto now = [] { return std::int64_t(reigen::detail::Clock::now().time_since_epoch().count()); };
    on_every_world([&](const Communicator& world) { // one clock, since the ranks are on one machine
        for (int late = 0; late < world.size(); ++late) {
            if (world.rank() == late)
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            std::vector<std::int64_t> last_to_come = {now()};
            world.barrier();
            std::vector<std::int64_t> first_to_go = {now()};
            world.all_reduce(last_to_come, Reduction::max);
            world.all_reduce(first_to_go, Reduction::min);
            EXPECT_LE(last_to_come[0], first_to_go[0]) << "late " << late;
        }
    });
}

// TransformerEngine PR#951
TEST(collectives, an_input_may_be_overwritten_as_soon_as_the_call_returns) {
    on_every_backend([](const Communicator& world) {
        for (int round = 0; round < 50; ++round) {
            const Index each = round % 2 == 0 ? 9 : 6000;
            auto mine = small_values<float>(world.rank() + round, each);
            std::vector<float> all(std::size_t(each * world.size()));
            world.all_gather(mine, all);
            std::ranges::fill(mine, std::numeric_limits<float>::quiet_NaN());
            std::vector<float> want;
            for (int r = 0; r < world.size(); ++r)
                for (const float value : small_values<float>(r + round, each))
                    want.push_back(value);
            ASSERT_EQ(all, want);
        }
    });
}

TEST(collectives, bytes_and_messages_are_the_closed_forms) {
    on_every_backend([](const Communicator& world) {
        const Index ranks = world.size();
        const Index others = ranks - 1;
        const auto sent_by = [&](auto call) {
            const reigen::Traffic before = world.traffic();
            call();
            return world.traffic() - before;
        };
        const Index n = 60 * 120; // divisible by every P
        std::vector<float> all(std::size_t(n), 1);
        std::vector<float> mine(std::size_t(n / ranks), 1);
        EXPECT_EQ(sent_by([&] { world.all_reduce(all); }), (reigen::Traffic{2 * others, 2 * others * n / ranks * 4}));
        EXPECT_EQ(sent_by([&] { world.all_gather(mine, all); }), (reigen::Traffic{others, others * n / ranks * 4}));
        EXPECT_EQ(sent_by([&] { world.reduce_scatter(all, mine); }), (reigen::Traffic{others, others * n / ranks * 4}));
        std::vector<double> one = {double(sent_by([&] { world.broadcast(all, 0); }).bytes)};
        world.all_reduce(one);
        EXPECT_EQ(one[0], double(others * n * 4));
        EXPECT_EQ(sent_by([&] { world.barrier(); }),
                  (reigen::Traffic{Index(std::bit_width(std::uint64_t(others))), 0}));
    });
}

TEST(collectives, the_traffic_of_a_rank_is_that_of_all_its_communicators) {
    on_world(2, [](const Communicator& world) {
        const Communicator other = world.split(0, world.rank());
        const reigen::Traffic before = reigen::traffic_of_rank();
        std::vector<float> values(10);
        world.all_reduce(values);
        other.all_reduce(values);
        EXPECT_EQ(reigen::traffic_of_rank() - before, (reigen::Traffic{2, 80}));
        EXPECT_EQ(other.traffic(), (reigen::Traffic{1, 40}));
    });
}

} // namespace collectives_test
