#include "comm/values.hpp"

#include <gtest/gtest.h>

namespace arguments_test {

using reigen::ArgumentError;
using reigen::Buffer;
using reigen::Error;
using reigen::ShapeError;

namespace {

struct WrongCall {
    std::string words;
    bool shape; // a ShapeError, else an ArgumentError
    std::function<void(const Communicator&)> call;
};

std::vector<float> floats(Index count) {
    return std::vector<float>(std::size_t(count));
}

// Each made by rank 0 of 2.
const std::vector<WrongCall> wrong_calls = {
    {"send: rank 2 of 2", false, [](auto& ranks) { ranks.send(floats(1), 2); }},
    {"send: rank -1 of 2", false, [](auto& ranks) { ranks.send(floats(1), -1); }},
    {"send: rank 0 to itself", false, [](auto& ranks) { ranks.send(floats(1), 0); }},
    {"receive: rank 5 of 2", false, [](auto& ranks) { ranks.receive(floats(1), 5); }},
    {"receive: rank 0 to itself", false, [](auto& ranks) { ranks.receive(floats(1), 0); }},
    {"send: tag -1; want 0 to 16383", false, [](auto& ranks) { ranks.send(floats(1), 1, -1); }},
    {"receive: tag 16384; want", false, [](auto& ranks) { ranks.receive(floats(1), 1, 16384); }},
    {"send: rank 2 of 2", false, [](auto& ranks) { ranks.start_send(Buffer<int>(1), 2); }},
    {"receive: tag 20000", false, [](auto& ranks) { ranks.start_receive(Buffer<int>(1), 1, 20000); }},
    {"all_gather: 3 elements on each of 2 ranks are not the whole of 7", true,
     [](auto& ranks) { ranks.all_gather(floats(3), floats(7)); }},
    {"all_gather: 3 parts for 2 ranks", true,
     [](auto& ranks) { ranks.all_gather(floats(3), floats(6), std::vector<Index>{3, 2, 1}); }},
    {"all_gather: the parts sum to 7, the whole has 6 elements", true,
     [](auto& ranks) { ranks.all_gather(floats(3), floats(6), std::vector<Index>{3, 4}); }},
    {"all_gather: part 0 has 2 elements, the range of this rank 3", true,
     [](auto& ranks) { ranks.all_gather(floats(3), floats(6), std::vector<Index>{2, 4}); }},
    {"all_gather: a part is negative", true,
     [](auto& ranks) { ranks.all_gather(floats(3), floats(2), std::vector<Index>{3, -1}); }},
    {"reduce_scatter: 3 elements on each of 2 ranks are not the whole of 5", true,
     [](auto& ranks) { ranks.reduce_scatter(floats(5), floats(3)); }},
    {"reduce_scatter: the parts sum to 6, the whole has 5 elements", true,
     [](auto& ranks) { ranks.reduce_scatter(floats(5), floats(3), Reduction::sum, std::vector<Index>{3, 3}); }},
    {"reduce_scatter: part 0 has 1 elements, the range of this rank 3", true,
     [](auto& ranks) { ranks.reduce_scatter(floats(5), floats(3), Reduction::max, std::vector<Index>{1, 4}); }},
    {"broadcast: root 2 of 2", false, [](auto& ranks) { ranks.broadcast(floats(1), 2); }},
    {"broadcast: root -1 of 2", false, [](auto& ranks) { ranks.start_broadcast(Buffer<float>(1), -1); }},
    {"all_to_all: out: 1 parts for 2 ranks", true,
     [](auto& ranks) { ranks.all_to_all(floats(2), std::vector<Index>{2}, floats(2), std::vector<Index>{1, 1}); }},
    {"all_to_all: in: the parts sum to 3, the whole has 2 elements", true,
     [](auto& ranks) { ranks.all_to_all(floats(2), std::vector<Index>{1, 1}, floats(2), std::vector<Index>{1, 2}); }},
    {"all_to_all: rank 0 gives itself 1 elements and takes 2", true,
     [](auto& ranks) { ranks.all_to_all(floats(2), std::vector<Index>{1, 1}, floats(3), std::vector<Index>{2, 1}); }},
    {"all_to_all: out: a part is negative", true,
     [](auto& ranks) { ranks.all_to_all(floats(2), std::vector<Index>{3, -1}, floats(2), std::vector<Index>{1, 1}); }},
    {"all_reduce: null data, 4 elements", false,
     [](auto& ranks) { ranks.all_reduce(std::span<float>(static_cast<float*>(nullptr), 4)); }},
    {"send: null data, 4 elements", false,
     [](auto& ranks) { ranks.send(std::span<const float>(static_cast<const float*>(nullptr), 4), 1); }},
    {"split: color -2; want 0 or more", false, [](auto& ranks) { ranks.split(-2, 0); }},
    {"set_deadline: -1 seconds", false, [](auto& ranks) { ranks.set_deadline(-1); }},
    {"Communicator: no backend", false, [](auto&) { Communicator(std::shared_ptr<reigen::Backend>()); }},
};

} // namespace

TEST(arguments, wrong_ones_are_refused_before_any_message_with_words_that_help) {
    on_world(2, [](const Communicator& world) {
        if (world.rank() == 0)
            for (const WrongCall& wrong : wrong_calls) {
                const auto shape = words_of<ShapeError>([&] {
                    try {
                        wrong.call(world);
                        ADD_FAILURE() << "no error: " << wrong.words;
                    } catch (const ArgumentError& error) {
                        EXPECT_FALSE(wrong.shape) << error.what();
                        EXPECT_NE(std::string(error.what()).find(wrong.words), std::string::npos) << error.what();
                    }
                });
                if (wrong.shape) {
                    EXPECT_NE(shape.find(wrong.words), std::string::npos) << shape << "\nwant " << wrong.words;
                }
            }
        EXPECT_EQ(world.traffic(), reigen::Traffic{});
        std::vector<int> values = {1};
        world.all_reduce(values); // the order of collectives is as before
        EXPECT_EQ(values[0], 2);
    });
}

TEST(arguments, one_rank_has_nobody_to_talk_to) {
    const Communicator self;
    EXPECT_THROW(self.send(floats(1), 0), ArgumentError);
    EXPECT_THROW(self.receive(floats(1), 1), ArgumentError);
    std::vector<float> values = {1, 2};
    self.all_reduce(values);
    self.barrier();
    EXPECT_EQ(values, (std::vector<float>{1, 2}));
    EXPECT_EQ(self.traffic(), reigen::Traffic{});
}

// Megatron#6656
TEST(arguments, what_one_rank_gathers_is_a_copy) {
    const Communicator self;
    const std::vector<float> x = {1, 2, 3};
    std::vector<float> y(3);
    self.all_gather(x, y);
    y[0] = 9;
    EXPECT_EQ(x, (std::vector<float>{1, 2, 3}));
}

TEST(arguments, a_copy_is_the_same_communicator_and_a_split_is_another) {
    on_every_backend([](const Communicator& world) {
        const Communicator copy = world;
        EXPECT_EQ(copy, world);
        EXPECT_FALSE(world.split(0, 0) == world);
        copy.set_deadline(12);
        EXPECT_EQ(world.deadline(), 12);
    });
    EXPECT_EQ(Communicator().deadline(), 300);
}

} // namespace arguments_test
