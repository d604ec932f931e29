#include "comm/values.hpp"

#include <reigen/comm/collectives/execution.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace failure_test {

using reigen::CommunicationError;
using reigen::TimeoutError;
using reigen::detail::Clock;
using reigen::detail::seconds_since;

namespace {

/// A communicator that may break without harm to the world's.
Communicator with_deadline(const Communicator& world, double seconds) {
    const Communicator copy = unchecked(world);
    copy.set_deadline(seconds);
    return copy;
}

/// Rank 0 of two, which loses its core in the middle of a wait; what it waits for comes meanwhile.
class HeldUp final : public reigen::Backend {
  public:
    int rank() const override { return 0; }
    int size() const override { return 2; }
    std::shared_ptr<Backend> split(int, std::span<const int>) override { return nullptr; }

    std::unique_ptr<reigen::Message> start_message(const reigen::Operation&) override {
        return std::make_unique<Receive>();
    }

    std::unique_ptr<reigen::Started> start_collective(const reigen::Operation& operation) override {
        return reigen::start_by_messages(*this, operation);
    }

  private:
    class Receive final : public reigen::Message {
      public:
        bool advance() override {
            ++looks_;
            if (looks_ == 2) // the first is when it starts
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            return looks_ > 2;
        }
        bool revoke() noexcept override { return true; }
        std::string waits_for() const override { return "rank 1"; }

      private:
        int looks_ = 0;
    };
};

/// The seconds that a timeout's message says were waited.
double seconds_in(const std::string& words) {
    const auto at = words.find("waited ");
    return at == std::string::npos ? -1 : std::atof(words.c_str() + at + 7);
}

} // namespace

TEST(failure, a_receive_that_nothing_comes_for_ends_at_the_deadline_and_says_so) {
    on_world(2, [](const Communicator& world) {
        const Communicator ranks = with_deadline(world, 0.2);
        if (world.rank() == 0) {
            std::vector<float> values(3);
            const auto start = Clock::now();
            const auto words = words_of<TimeoutError>([&] { ranks.receive(values, 1, 7); });
            EXPECT_EQ(words.substr(0, 19), "rank 0 of 2 waited ");
            EXPECT_GE(seconds_in(words), 0.2);
            EXPECT_LE(seconds_in(words), seconds_since(start));
            EXPECT_NE(words.find(" s for rank 1 in receive of 3 float, tag 7"), std::string::npos) << words;
            EXPECT_GE(seconds_since(start), 0.2);
            EXPECT_LT(seconds_since(start), 5);
            EXPECT_FALSE(ranks.failed()); // it could be taken back
        }
        world.barrier();
        ranks.set_deadline(30);
        if (world.rank() == 1)
            ranks.send(std::vector<float>{1, 2, 3}, 0, 7);
        else {
            std::vector<float> values(3);
            ranks.receive(values, 1, 7); // and takes nothing away from the next
            EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
        }
    });
}

// One rank alone waits here: of two, the first to give up may wake the other with a PeerError before its own deadline.
TEST(failure, a_collective_that_ranks_do_not_join_ends_at_the_deadline_and_fails_the_communicator) {
    on_world(3, [](const Communicator& world) {
        const Communicator ranks = with_deadline(world, 0.2);
        std::vector<float> values(5000);
        if (world.rank() == 0) {
            const auto words = words_of<TimeoutError>([&] { ranks.all_reduce(values); });
            EXPECT_NE(words.find("rank 1, rank 2"), std::string::npos) << words;
            EXPECT_NE(words.find("in all_reduce of 5000 float"), std::string::npos) << words;
            EXPECT_TRUE(ranks.failed());
            const auto later = words_of<CommunicationError>([&] { ranks.barrier(); });
            EXPECT_NE(later.find("barrier: this communicator failed earlier: " + words), std::string::npos) << later;
        }
        world.barrier(); // another communicator is not touched
    });
}

TEST(failure, every_collective_and_every_started_operation_has_the_deadline) {
    on_world(2, [](const Communicator& world) {
        std::vector<float> two(2);
        std::vector<float> four(4);
        const std::vector<Index> parts = {2, 2};
        const std::vector<std::function<void(const Communicator&)>> calls = {
            [&](const Communicator& ranks) { ranks.all_gather(two, four); },
            [&](const Communicator& ranks) { ranks.reduce_scatter(four, two); },
            [&](const Communicator& ranks) { ranks.broadcast(two, 1); },
            [&](const Communicator& ranks) { ranks.all_to_all(std::vector(four), parts, four, parts); },
            [&](const Communicator& ranks) { ranks.barrier(); },
            [&](const Communicator& ranks) { ranks.split(0, 0); },
            [&](const Communicator& ranks) { ranks.start_all_reduce(buffer_of(two)).wait(); },
            [&](const Communicator& ranks) { ranks.start_receive(buffer_of(two), 1).wait(); },
        };
        for (const auto& call : calls) {
            const Communicator ranks = with_deadline(world, 0.05);
            if (world.rank() == 0) {
                EXPECT_THROW(call(ranks), TimeoutError);
            }
            world.barrier();
        }
    });
}

TEST(failure, no_deadline_waits_as_long_as_it_takes) {
    on_world(2, [](const Communicator& world) {
        const Communicator ranks = with_deadline(world, 0);
        if (world.rank() == 1)
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        std::vector<int> values = {world.rank()};
        ranks.all_reduce(values);
        EXPECT_EQ(values[0], 1);
    });
}

TEST(failure, a_wait_may_have_its_own_deadline) {
    on_world(2, [](const Communicator& world) {
        const Communicator ranks = with_deadline(world, 30);
        if (world.rank() == 0) {
            const auto start = Clock::now();
            auto pending = ranks.start_receive(reigen::Buffer<int>(1), 1);
            const auto words = words_of<TimeoutError>([&] { pending.wait(0.1); });
            EXPECT_GE(seconds_in(words), 0.1);
            EXPECT_LT(seconds_since(start), 5);
            EXPECT_FALSE(pending.valid());
            pending = ranks.start_receive(reigen::Buffer<int>(1), 1);
            EXPECT_THROW(pending.wait(-1), reigen::ArgumentError);
            EXPECT_THROW(pending.wait(0.01), TimeoutError); // it was not lost
        }
        world.barrier();
    });
}

TEST(failure, a_scope_may_have_its_own_deadline_shorter_or_longer) {
    on_world(2, [](const Communicator& world) {
        const Communicator patient = with_deadline(world, 30);
        const Communicator hasty = with_deadline(world, 0.05);
        if (world.rank() == 0) {
            const auto start = Clock::now();
            const auto receive = [&](std::optional<double> seconds = {}) {
                patient.start_receive(reigen::Buffer<int>(1), 1).wait(seconds);
            };
            {
                const reigen::Deadline outer(30);
                const reigen::Deadline inner(0.1);
                EXPECT_GE(seconds_in(words_of<TimeoutError>(receive)), 0.1);
                EXPECT_GE(seconds_in(words_of<TimeoutError>([&] { receive(0.2); })), 0.2);
            }
            EXPECT_LT(seconds_since(start), 10);
            std::vector<int> values(1);
            {
                const reigen::Deadline none(0);
                hasty.receive(values, 1);
                EXPECT_EQ(values[0], 7);
            }
            EXPECT_THROW(hasty.receive(values, 1), TimeoutError);
            EXPECT_THROW(reigen::Deadline(-1), reigen::ArgumentError);
        } else {
            hasty.set_deadline(30);
            std::this_thread::sleep_for(std::chrono::milliseconds(400));
            hasty.send(std::vector<int>{7}, 0);
        }
        world.barrier();
    });
}

TEST(failure, a_rank_that_was_held_up_itself_looks_once_more_before_it_gives_up) {
    const Communicator ranks(std::make_shared<HeldUp>());
    ranks.set_deadline(0.01);
    std::vector<int> values(1);
    EXPECT_NO_THROW(ranks.receive(values, 1));
}

TEST(failure, a_timeout_in_a_group_says_which_ranks_of_the_world_it_has) {
    on_world(4, [](const Communicator& world) {
        const Communicator pair = unchecked(world).split(world.rank() % 2, -world.rank()); // {2 0} {3 1}
        pair.set_deadline(0.1);
        if (world.rank() == 1) {
            const auto words = words_of<TimeoutError>([&] { pair.barrier(); });
            EXPECT_EQ(words.substr(0, 19), "rank 1 of 2 waited ");
            EXPECT_NE(words.find(" s for rank 0 in barrier, in the group of the ranks 3, 1"), std::string::npos)
                << words;
        }
        world.barrier();
    });
}

// EasyContext#10, pytorch#113376
TEST(failure, a_collective_of_unlike_sizes_is_an_error_on_every_rank) {
    on_world(3, [](const Communicator& world) {
        const Communicator ranks = with_deadline(world, 0.5);
        std::vector<float> values(world.rank() == 1 ? 4 : 3);
        EXPECT_THROW(ranks.all_reduce(values), reigen::Error);
        EXPECT_TRUE(ranks.failed());
        world.barrier();
    });
}

TEST(failure, the_buffers_of_a_receive_that_timed_out_are_freed_once_it_is_taken_back) {
    on_world(2, [](const Communicator& world) {
        const Communicator ranks = with_deadline(world, 0.05);
        reigen::detail::registry().drop_finished();
        const auto before = reigen::memory_account()->total().current;
        if (world.rank() == 0) {
            auto pending = ranks.start_receive(reigen::Buffer<double>(1000), 1);
            EXPECT_EQ(reigen::memory_account()->total().current - before, 8000);
            EXPECT_THROW(pending.wait(), TimeoutError);
            EXPECT_EQ(reigen::memory_account()->total().current, before);
        }
        world.barrier();
    });
}

} // namespace failure_test
