#include <reigen/comm/faulty.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace faulty_test {

using reigen::CommunicationError;
using reigen::FaultPlan;
using reigen::faulty;
using reigen::Operation;
using reigen::TimeoutError;
using reigen::detail::Clock;
using reigen::detail::seconds_since;

namespace {

constexpr FaultPlan delayed = {.delay = 1e-4, .late = 3};
constexpr FaultPlan unbuffered = {.delay = 5e-5, .synchronous = true};
constexpr FaultPlan everything = {.delay = 5e-5, .late = 2, .synchronous = true, .block = 7};

int next_of(const Communicator& world) {
    return (world.rank() + 1) % world.size();
}

int previous_of(const Communicator& world) {
    return (world.rank() + world.size() - 1) % world.size();
}

Operation message(reigen::Call call, std::vector<float>& values, int peer) {
    Operation operation;
    operation.call = call;
    operation.type = reigen::DataType::float32;
    operation.peer = peer;
    (call == reigen::Call::send ? operation.in_size : operation.out_size) = Index(values.size());
    operation.in = call == reigen::Call::send ? reinterpret_cast<const std::byte*>(values.data()) : nullptr;
    operation.out = call == reigen::Call::send ? nullptr : reinterpret_cast<std::byte*>(values.data());
    return operation;
}

/// Looks until it is complete; how often that took.
int looks(reigen::Started& started) {
    const auto start = Clock::now();
    int count = 1;
    for (; !started.advance() && seconds_since(start) < 20; ++count)
        std::this_thread::yield();
    return count;
}

/// Notes the sizes of what passes.
class Sizes final : public reigen::Wrapper {
  public:
    using Wrapper::Wrapper;

    std::unique_ptr<reigen::Message> start_message(const Operation& operation) override {
        seen.push_back(std::max(operation.in_size, operation.out_size));
        return Wrapper::start_message(operation);
    }

    std::shared_ptr<Backend> split(int color, std::span<const int> members) override {
        auto child = std::make_shared<Sizes>(inner().split(color, members));
        last_child = child.get();
        return child;
    }

    std::vector<Index> seen;
    Sizes* last_child = nullptr;
};

} // namespace

TEST(faulty, what_is_sent_is_read_late_and_what_is_received_is_garbage_until_it_is_complete) {
    on_world(2, [](const Communicator& good) {
        const Communicator world = faulty(good, {.delay = 1e-3, .late = 20});
        std::vector<float> values = {1, 2, 3};
        const auto start = [&](reigen::Call call) {
            return world.backend()->start_message(message(call, values, 1 - world.rank()));
        };
        if (world.rank() == 0) {
            const auto send = start(reigen::Call::send);
            values[1] = 7; // which nobody may do
            looks(*send);
        } else {
            const auto receive = start(reigen::Call::receive);
            while (!receive->advance())
                for (const float value : values)
                    EXPECT_TRUE(std::isnan(value));
            EXPECT_EQ(values, (std::vector<float>{1, 7, 3}));
        }
        good.barrier();
    });
}

TEST(faulty, a_message_is_reported_up_to_so_many_looks_late) {
    on_world(2, [](const Communicator& good) {
        const Communicator world = faulty(good, {.late = 5});
        std::vector<int> seen(6);
        for (int i = 0; i < 100; ++i) {
            std::vector<float> values(3);
            const bool sends = world.rank() == 0;
            auto started = world.backend()->start_message(
                message(sends ? reigen::Call::send : reigen::Call::receive, values, 1 - world.rank()));
            if (!sends) {
                good.barrier(); // the message has left
                std::this_thread::sleep_for(std::chrono::microseconds(50));
                ++seen[std::size_t(std::min(looks(*started), 6) - 1)];
            } else {
                static_cast<void>(started->advance());
                good.barrier();
                looks(*started);
            }
        }
        if (world.rank() == 1) {
            for (const int count : seen) {
                EXPECT_GT(count, 2); // each of them comes about every sixth time
            }
        }
    });
}

// nccl#479, mpich#418
TEST(faulty, a_send_is_complete_only_when_it_is_taken) {
    on_world(2, [](const Communicator& good) {
        const Communicator world = faulty(good, unbuffered);
        if (world.rank() == 0) {
            auto send = world.start_send(buffer_of(std::vector<int>{5}), 1);
            const auto start = Clock::now();
            while (seconds_since(start) < 0.05)
                EXPECT_FALSE(send.done());
            good.barrier();
            EXPECT_EQ(send.wait()[0], 5);
        } else {
            good.barrier();
            std::vector<int> got(1);
            world.receive(got, 0);
            EXPECT_EQ(got[0], 5);
        }
        good.barrier();
    });
}

// nccl#479: with sends that buffer this passes
TEST(faulty, a_ring_whose_ranks_all_send_first_ends_by_its_deadline) {
    for (const int ranks : {3, 5})
        on_world(ranks, [](const Communicator& good) {
            const Communicator world = faulty(good, unbuffered);
            world.set_deadline(0.1);
            const auto words = words_of<reigen::Error>([&] { world.send(std::vector<int>{1}, next_of(world)); });
            EXPECT_NE(words.find(reigen::concat("rank ", next_of(world), " in send of 1 int32")), std::string::npos);
            good.barrier();
        });
}

TEST(faulty, long_messages_travel_in_blocks) {
    on_world(2, [](const Communicator& good) {
        const auto sizes = std::make_shared<Sizes>(good.backend());
        const Communicator recorded = faulty(Communicator(sizes), {.block = 7});
        recorded.set_deadline(30);
        std::vector<float> values = small_values<float>(0, 20);
        if (recorded.rank() == 0)
            recorded.send(values, 1);
        else
            recorded.receive(std::span(values), 0);
        EXPECT_EQ(values, small_values<float>(0, 20));
        ASSERT_NE(sizes->last_child, nullptr);
        EXPECT_EQ(sizes->last_child->seen, (std::vector<Index>{7, 7, 6}));
        EXPECT_EQ(recorded.traffic().messages, recorded.rank() == 0 ? 1 : 0);
        good.barrier();
    });
}

TEST(faulty, a_rank_throws_at_the_message_of_the_plan) {
    on_world(3, [](const Communicator& good) {
        const Communicator world = faulty(good, {.throws = reigen::FaultAt{1, 5}});
        world.set_deadline(0.3);
        std::vector<float> values(10);
        world.barrier(); // two sends and two receives of each rank
        const auto words = words_of<reigen::Error>([&] { world.all_reduce(values); });
        EXPECT_EQ(words == "rank 1 fails at its message 5, as planned", world.rank() == 1) << words;
        EXPECT_NE(words, "");
        EXPECT_TRUE(world.failed());
        good.barrier();
    });
}

TEST(faulty, a_rank_goes_silent_at_the_message_of_the_plan_and_leaves_by_its_deadline) {
    on_world(3, [](const Communicator& good) {
        const Communicator world = faulty(good, {.silent = reigen::FaultAt{1, 4}});
        world.barrier();
        world.set_deadline(0.3);
        std::vector<float> values(10);
        const auto start = Clock::now();
        EXPECT_THROW(world.all_reduce(values), reigen::Error);
        if (world.rank() == 1) {
            EXPECT_GE(seconds_since(start), 0.3);
        }
        good.barrier();
    });
}

TEST(faulty, its_splits_are_as_bad_and_share_the_count) {
    on_world(2, [](const Communicator& good) {
        const Communicator world = faulty(good, {.throws = reigen::FaultAt{0, 4}});
        const Communicator child = world.split(0, world.rank()); // one send and one receive
        child.barrier();                                         // as many
        child.set_deadline(0.2);
        const auto words = words_of<reigen::Error>([&] { child.barrier(); });
        EXPECT_EQ(words == "rank 0 fails at its message 4, as planned", world.rank() == 0) << words;
        good.barrier();
    });
}

// TransformerEngine PR#951
TEST(faulty, an_input_may_be_overwritten_as_soon_as_a_blocking_call_returns) {
    on_every_world([](const Communicator& good) {
        for (const FaultPlan& plan : {delayed, unbuffered, everything}) {
            const Communicator world = faulty(good, plan);
            const std::vector<Index> parts(std::size_t(world.size()), 9);
            const auto own = small_values<float>(world.rank(), 9);
            std::vector<float> whole;
            for (int r = 0; r < world.size(); ++r)
                whole.insert(whole.end(), own.begin(), own.end());
            std::vector<float> gathered, sums(9, 0);
            for (int r = 0; r < world.size(); ++r)
                for (Index i = 0; i < 9; ++i) {
                    gathered.push_back(float(small_value(r, i)));
                    sums[std::size_t(i)] += float(small_value(r, i));
                }
            const auto spoil = [](std::vector<float>& values) {
                std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN());
            };
            for (int round = 0; round < 20; ++round) {
                auto mine = own, all = whole, out = whole, told = own;
                std::vector<float> got(gathered.size()), sum(9), in(gathered.size());
                world.all_gather(mine, got);
                spoil(mine);
                world.reduce_scatter(all, sum);
                spoil(all);
                world.all_to_all(out, parts, in, parts);
                spoil(out);
                world.broadcast(told, round % world.size());
                const auto copy = told;
                spoil(told);
                EXPECT_EQ(got, gathered);
                EXPECT_EQ(sum, sums);
                EXPECT_EQ(in, gathered);
                EXPECT_EQ(copy, small_values<float>(round % world.size(), 9));
                if (world.size() == 1)
                    continue;
                auto receive = world.start_receive(reigen::Buffer<float>(9), previous_of(world));
                auto sent = own;
                world.send(sent, next_of(world));
                spoil(sent);
                EXPECT_EQ(vector_of(receive.wait()), small_values<float>(previous_of(world), 9));
            }
        }
    });
}

TEST(faulty, the_same_seed_delays_the_same_messages) {
    const auto draws = [](std::uint64_t seed, int rank) {
        reigen::detail::FaultState state({.seed = seed, .delay = 1, .late = 9}, rank);
        std::vector<double> numbers;
        for (int i = 0; i < 50; ++i) {
            state.next();
            numbers.push_back(state.delay() + state.late());
        }
        return numbers;
    };
    EXPECT_EQ(draws(3, 0), draws(3, 0));
    EXPECT_NE(draws(3, 0), draws(4, 0));
    EXPECT_NE(draws(3, 0), draws(3, 1));
}

TEST(faulty, plans_that_make_no_sense_are_refused) {
    const Communicator alone;
    EXPECT_THROW(faulty(alone, {.delay = -1}), reigen::ArgumentError);
    EXPECT_THROW(faulty(alone, {.late = -1}), reigen::ArgumentError);
    EXPECT_THROW(faulty(alone, {.block = -1}), reigen::ArgumentError);
    EXPECT_THROW(faulty(alone, {.throws = reigen::FaultAt{1, 0}}), reigen::ArgumentError);
    EXPECT_THROW(faulty(alone, {.silent = reigen::FaultAt{0, -1}}), reigen::ArgumentError);
    EXPECT_EQ(faulty(alone, everything).size(), 1);
}

} // namespace faulty_test
