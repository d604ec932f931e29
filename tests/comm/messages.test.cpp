#include "comm/values.hpp"

#include <gtest/gtest.h>

namespace messages_test {

TEST(messages, of_equal_tags_keep_their_order_and_tags_are_kept_apart) {
    on_world(2, [](const Communicator& world) {
        const int peer = 1 - world.rank();
        std::vector<reigen::Pending<int>> sends;
        for (int i = 0; i < 6; ++i)
            sends.push_back(world.start_send(buffer_of(std::vector<int>{100 * world.rank() + i}), peer, i % 2));
        std::vector<int> got(1);
        for (const int i : {1, 0, 3, 5, 2, 4}) { // odd ones first
            world.receive(got, peer, i % 2);
            EXPECT_EQ(got[0], 100 * peer + i);
        }
        for (auto& send : sends)
            EXPECT_EQ(send.wait().size(), 1);
    });
}

TEST(messages, receives_started_before_their_sends_match_in_order) {
    on_world(2, [](const Communicator& world) {
        const int peer = 1 - world.rank();
        std::vector<reigen::Pending<double>> receives;
        for (int i = 0; i < 5; ++i)
            receives.push_back(world.start_receive(reigen::Buffer<double>(3), peer, 4));
        world.barrier();
        std::vector<reigen::Pending<double>> sends;
        for (int i = 0; i < 5; ++i)
            sends.push_back(world.start_send(buffer_of(std::vector<double>(3, 10.0 * world.rank() + i)), peer, 4));
        for (int i = 4; i >= 0; --i)
            EXPECT_EQ(vector_of(receives[std::size_t(i)].wait()), std::vector<double>(3, 10.0 * peer + i));
        for (auto& send : sends)
            send.wait();
    });
}

TEST(messages, every_type_and_size_arrives) {
    on_every_world([](const Communicator& world) {
        if (world.size() == 1)
            return;
        const int next = (world.rank() + 1) % world.size();
        const int previous = (world.rank() + world.size() - 1) % world.size();
        for_each_type([&]<class T>() {
            for (const Index count : {0, 1, 7, 100000}) {
                auto send = world.start_send(buffer_of(small_values<T>(world.rank(), count)), next);
                std::vector<T> values(std::size_t(count), T(99));
                world.receive(values, previous);
                EXPECT_EQ(values, small_values<T>(previous, count));
                send.wait();
            }
        });
    });
}

// mlx#4475
TEST(messages, five_hundred_rounds_of_a_ring_bring_every_block_home) {
    on_every_world([](const Communicator& world) {
        if (world.size() == 1)
            return;
        const int next = (world.rank() + 1) % world.size();
        const int previous = (world.rank() + world.size() - 1) % world.size();
        for (int round = 0; round < 500; ++round) {
            const Index count = std::vector<Index>{1, 2, 5, 7}[std::size_t(round % 4)];
            const auto own = small_values<std::int32_t>(world.rank() + round, count);
            auto block = buffer_of(own);
            for (int hop = 0; hop < world.size(); ++hop) {
                auto send = world.start_send(std::move(block), next);
                auto receive = world.start_receive(reigen::Buffer<std::int32_t>(count), previous);
                block = receive.wait();
                send.wait();
                const int origin = (world.rank() - hop - 1 + world.size()) % world.size();
                ASSERT_EQ(vector_of(block), small_values<std::int32_t>(origin + round, count)) << "hop " << hop;
            }
        }
    });
}

// nccl#479, mpich#418
TEST(messages, a_ring_of_blocking_sends_needs_no_buffering_where_the_receives_are_started) {
    on_every_world([](const Communicator& world) {
        if (world.size() == 1)
            return;
        const int next = (world.rank() + 1) % world.size();
        const int previous = (world.rank() + world.size() - 1) % world.size();
        std::vector<float> out = small_values<float>(world.rank(), 30000);
        std::vector<float> in(30000);
        auto receive = world.start_receive(reigen::Buffer<float>(30000), previous);
        world.send(out, next);
        std::ranges::fill(out, -1.0F);
        EXPECT_EQ(vector_of(receive.wait()), small_values<float>(previous, 30000));
    });
}

// EasyContext#10, pytorch#113376
TEST(messages, of_unlike_sizes_are_an_error_that_names_both) {
    on_world(2, [](const Communicator& world) {
        world.set_deadline(5);
        std::vector<float> three(3);
        std::vector<float> four(4);
        if (world.rank() == 0) {
            const auto words = words_of<reigen::ShapeError>([&] { world.receive(four, 1, 2); });
            EXPECT_NE(words.find("receive of 4 float, tag 2 from rank 1: 12 bytes are sent, 16 are expected"),
                      std::string::npos)
                << words;
        } else {
            try { // a transport that buffers lets the sender go
                world.send(three, 0, 2);
            } catch (const reigen::ShapeError& error) {
                EXPECT_NE(std::string(error.what()).find("12 bytes are sent, 16 are expected"), std::string::npos);
            }
        }
        EXPECT_FALSE(world.failed());
    });
}

TEST(messages, too_long_for_their_receive_are_an_error) {
    on_world(2, [](const Communicator& world) {
        world.set_deadline(5);
        if (world.rank() == 0) {
            std::vector<float> two(2);
            EXPECT_THROW(world.receive(two, 1), reigen::ShapeError);
        } else {
            try {
                world.send(std::vector<float>(9), 0);
            } catch (const reigen::ShapeError& error) {
                EXPECT_NE(std::string(error.what()).find("36 bytes are sent, 8 are expected"), std::string::npos);
            }
        }
    });
}

} // namespace messages_test
