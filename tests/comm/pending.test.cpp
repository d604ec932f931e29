#include "comm/values.hpp"

#include <gtest/gtest.h>

namespace pending_test {

using reigen::Buffer;
using reigen::Pending;

TEST(pending, every_started_collective_gives_what_the_blocking_one_gives) {
    on_every_backend([](const Communicator& world) {
        const auto parts = uneven_parts(world.size());
        const Index mine = parts[std::size_t(world.rank())];
        const auto all = small_values<float>(world.rank(), total(parts));
        const auto part = small_values<float>(world.rank(), mine);
        auto reduced = all;
        world.all_reduce(reduced);
        std::vector<float> gathered(all.size());
        world.all_gather(part, gathered, parts);
        std::vector<float> scattered(part.size());
        world.reduce_scatter(all, scattered, Reduction::max, parts);
        auto told = all;
        world.broadcast(told, world.size() - 1);

        auto all_reduce = world.start_all_reduce(buffer_of(all));
        auto all_gather = world.start_all_gather(buffer_of(part), Buffer<float>(total(parts)), parts);
        auto reduce_scatter = world.start_reduce_scatter(buffer_of(all), Buffer<float>(mine), Reduction::max, parts);
        auto broadcast = world.start_broadcast(buffer_of(all), world.size() - 1);
        EXPECT_EQ(vector_of(broadcast.wait()), told); // waited for in another order than started
        EXPECT_EQ(vector_of(all_gather.wait()), gathered);
        EXPECT_EQ(vector_of(reduce_scatter.wait()), scattered);
        EXPECT_EQ(vector_of(all_reduce.wait()), reduced);
    });
}

TEST(pending, started_all_to_all_transposes_the_ranks) {
    on_every_backend([](const Communicator& world) {
        const std::vector<Index> parts(std::size_t(world.size()), 2);
        Buffer<int> out(2 * world.size());
        for (Index i = 0; i < out.size(); ++i)
            out[i] = int(1000 * world.rank() + i);
        const auto in = world.start_all_to_all(std::move(out), parts, Buffer<int>(2 * world.size()), parts).wait();
        for (int from = 0; from < world.size(); ++from)
            for (int k = 0; k < 2; ++k)
                EXPECT_EQ(in[2 * from + k], 1000 * from + 2 * world.rank() + k);
    });
}

TEST(pending, many_collectives_are_in_flight_at_once_and_each_rank_waits_in_its_own_order) {
    on_every_backend([](const Communicator& world) {
        const int started = 40;
        std::vector<Pending<double>> pending;
        for (int k = 0; k < started; ++k)
            pending.push_back(world.start_all_reduce(buffer_of(small_values<double>(world.rank() + k, 50 + 40 * k))));
        for (int step = 0; step < started; ++step) {
            const int k = (step * 7 + 11 * world.rank()) % started;
            const auto sums = pending[std::size_t(k)].wait();
            for (Index i = 0; i < sums.size(); ++i) {
                double want = 0;
                for (int r = 0; r < world.size(); ++r)
                    want += small_value(r + k, i);
                ASSERT_EQ(sums[i], want) << "collective " << k << " at " << i;
            }
        }
    });
}

TEST(pending, poll_alone_brings_everything_to_its_end) {
    on_every_world([](const Communicator& world) {
        const Communicator other = world.split(0, -world.rank());
        auto first = world.start_all_reduce(buffer_of(small_values<float>(world.rank(), 300000)));
        auto second = other.start_all_gather(Buffer<float>::zeros(50000), Buffer<float>(50000 * world.size()));
        const auto start = reigen::detail::Clock::now();
        while (reigen::detail::registry().size() > 0 && reigen::detail::seconds_since(start) < 20)
            reigen::poll();
        EXPECT_EQ(reigen::detail::registry().size(), 0U);
        EXPECT_TRUE(first.done());
        EXPECT_TRUE(second.done());
        float want = 0;
        for (int r = 0; r < world.size(); ++r)
            want += float(small_value(r, 299999));
        EXPECT_EQ(first.wait()[299999], want);
        EXPECT_EQ(second.wait()[0], 0);
    });
}

TEST(pending, poll_costs_nothing_when_nothing_is_in_flight) {
    on_every_world([](const Communicator& world) {
        world.barrier();
        EXPECT_EQ(reigen::detail::poll_hook.call, nullptr);
        if (world.size() == 1)
            return;
        auto receive = world.start_receive(Buffer<int>(1), (world.rank() + 1) % world.size());
        EXPECT_NE(reigen::detail::poll_hook.call, nullptr);
        world.barrier(); // nobody has sent before all have looked
        world.send(std::vector<int>{1}, (world.rank() + world.size() - 1) % world.size());
        receive.wait();
        EXPECT_EQ(reigen::detail::poll_hook.call, nullptr);
    });
}

TEST(pending, an_abandoned_operation_is_parked_with_its_buffers_and_goes_on) {
    on_world(2, [](const Communicator& world) {
        reigen::detail::registry().drop_finished();
        const auto before = reigen::memory_account()->total().current;
        if (world.rank() == 0) {
            try {
                const auto pending = world.start_send(buffer_of(small_values<float>(0, 100000)), 1);
                throw std::runtime_error("something else went wrong");
            } catch (const std::runtime_error&) {
                EXPECT_EQ(reigen::memory_account()->total().current - before, 400000);
            }
            world.barrier();
            const auto start = reigen::detail::Clock::now();
            while (reigen::detail::registry().size() > 0 && reigen::detail::seconds_since(start) < 20)
                reigen::poll();
            EXPECT_EQ(reigen::memory_account()->total().current, before);
        } else {
            world.barrier();
            std::vector<float> values(100000);
            world.receive(values, 0);
            EXPECT_EQ(values, small_values<float>(0, 100000));
        }
    });
}

TEST(pending, is_waited_for_once) {
    on_every_backend([](const Communicator& world) {
        auto pending = world.start_all_reduce(Buffer<float>::zeros(4));
        EXPECT_TRUE(pending.valid());
        pending.wait();
        EXPECT_FALSE(pending.valid());
        EXPECT_THROW(pending.wait(), reigen::ArgumentError);
        EXPECT_THROW(pending.done(), reigen::ArgumentError);
        EXPECT_THROW(Pending<int>().wait(), reigen::ArgumentError);
    });
}

} // namespace pending_test
