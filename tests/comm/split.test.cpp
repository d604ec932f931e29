#include "comm/values.hpp"

#include <gtest/gtest.h>

namespace split_test {

TEST(split, groups_are_ordered_by_key_and_exchange_their_own_data_only) {
    on_every_world([](const Communicator& world) {
        const int color = world.rank() % 2;
        const Communicator group = world.split(color, -world.rank()); // reversed
        std::vector<int> want;
        for (int r = world.size() - 1; r >= 0; --r)
            if (r % 2 == color)
                want.push_back(r);
        std::vector<int> got(want.size());
        ASSERT_EQ(group.size(), int(want.size()));
        group.all_gather(std::vector<int>{world.rank()}, got);
        EXPECT_EQ(got, want);
        EXPECT_EQ(want[std::size_t(group.rank())], world.rank());
    });
}

TEST(split, messages_of_a_group_and_of_its_parent_do_not_meet) {
    on_world(3, [](const Communicator& world) {
        const Communicator group = world.split(0, (world.rank() + 1) % 3); // rank 2 is first
        const auto exchange = [](const Communicator& ranks, int value, int tag) {
            const int next = (ranks.rank() + 1) % 3;
            const int previous = (ranks.rank() + 2) % 3;
            return std::pair(ranks.start_receive(reigen::Buffer<int>(1), previous, tag),
                             ranks.start_send(buffer_of(std::vector<int>{value}), next, tag));
        };
        auto in_world = exchange(world, world.rank(), 5);
        auto in_group = exchange(group, 10 + world.rank(), 5);
        EXPECT_EQ(in_group.first.wait()[0], 10 + (world.rank() + 2) % 3);
        EXPECT_EQ(in_world.first.wait()[0], (world.rank() + 2) % 3);
        in_world.second.wait();
        in_group.second.wait();
    });
}

TEST(split, of_a_split_and_many_in_a_row) {
    on_every_world([](const Communicator& world) {
        Communicator group = world;
        for (int depth = 0; depth < 20; ++depth) {
            group = group.split(0, group.size() - group.rank());
            std::vector<int> sum = {world.rank()};
            group.all_reduce(sum);
            ASSERT_EQ(sum[0], world.size() * (world.size() - 1) / 2);
        }
        const Communicator alone = group.split(group.rank(), 0);
        EXPECT_EQ(alone.size(), 1);
        alone.barrier();
    });
}

TEST(split, keeps_the_deadline_and_refuses_negative_colors) {
    on_every_backend([](const Communicator& world) {
        world.set_deadline(17);
        EXPECT_EQ(world.split(3, 0).deadline(), 17);
        EXPECT_THROW(world.split(-1, 0), reigen::ArgumentError);
        EXPECT_THROW(world.set_deadline(-1), reigen::ArgumentError);
    });
}

} // namespace split_test
