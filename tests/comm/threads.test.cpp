#include <reigen/comm/threads.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include <pthread.h>

namespace threads_test {

using reigen::Buffer;
using reigen::DisagreementError;
using reigen::PeerError;
using reigen::run_threads;

namespace {

/// How many of the ranks' calls ended in a PeerError with these words.
class Woken {
  public:
    explicit Woken(std::string words) : words_(std::move(words)) {}

    template <class Call>
    void count(Call call) {
        try {
            call();
        } catch (const PeerError& error) {
            EXPECT_NE(std::string(error.what()).find(words_), std::string::npos) << error.what();
            ++count_;
            throw;
        }
    }

    int count() const { return count_; }

  private:
    std::string words_;
    std::atomic<int> count_ = 0;
};

/// Has the ranks do what they do not all do alike, a number of times: each of them gets a DisagreementError, of which the
/// first one that comes out is.
void expect_disagreement_on_every_rank(int ranks, const std::function<void(const Communicator&)>& body) {
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> told = 0;
        const auto count = [&](const Communicator& world) {
            try {
                body(checked(world));
            } catch (const DisagreementError&) {
                ++told;
                throw;
            }
        };
        EXPECT_THROW(run_threads(ranks, count), DisagreementError);
        EXPECT_EQ(told, ranks);
    }
}

} // namespace

// mlx#4236
TEST(threads, a_rank_that_throws_wakes_the_others_and_its_exception_comes_out) {
    Woken woken("rank 1 failed: out of luck");
    const auto body = [&](const Communicator& world) {
        std::vector<float> values(1000);
        if (world.rank() == 1)
            throw std::out_of_range("out of luck");
        woken.count([&] { world.all_reduce(values); });
    };
    EXPECT_EQ(words_of<std::out_of_range>([&] { run_threads(3, body); }), "out of luck");
    EXPECT_EQ(woken.count(), 2);
}

TEST(threads, a_rank_that_throws_nothing_to_read_is_told_of_all_the_same) {
    const auto expect_woken = [](const std::string& words, const std::function<void()>& fail) {
        Woken woken("rank 1 failed: " + words);
        const auto body = [&](const Communicator& world) {
            if (world.rank() == 1)
                fail();
            woken.count([&] { world.barrier(); });
        };
        EXPECT_ANY_THROW(run_threads(3, body));
        EXPECT_EQ(woken.count(), 2);
    };
    expect_woken("an exception without a message", [] { throw std::runtime_error(""); });
    expect_woken("an exception of unknown type", [] { throw 42; });
}

TEST(threads, a_rank_that_throws_wakes_those_who_wait_for_others_of_other_groups) {
    Woken woken("rank 3 failed");
    const auto body = [&](const Communicator& world) {
        woken.count([&] {
            const Communicator pair = world.split(world.rank() / 2, 0); // {0 1} {2 3}
            std::vector<float> values(1);
            if (world.rank() == 3)
                throw std::out_of_range("here");
            if (world.rank() == 0)
                pair.receive(values, 1); // while rank 1 waits for 2
            if (world.rank() == 1)
                world.receive(values, 2);
            pair.barrier();
        });
    };
    EXPECT_THROW(run_threads(4, body), std::out_of_range);
    EXPECT_EQ(woken.count(), 3);
}

TEST(threads, a_rank_that_throws_wakes_at_once_those_who_wait_for_a_rank_that_computes) {
    std::atomic<bool> woken = false;
    const auto body = [&](const Communicator& world) {
        if (world.rank() == 1)
            throw std::out_of_range("here");
        if (world.rank() == 0) {
            std::vector<float> values(1);
            EXPECT_THROW(world.receive(values, 2), PeerError);
            woken = true;
        }
        const auto start = reigen::detail::Clock::now();
        while (world.rank() == 2 && !woken && reigen::detail::seconds_since(start) < 3)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (world.rank() == 2) {
            EXPECT_TRUE(woken);
        }
    };
    EXPECT_THROW(run_threads(3, body), std::out_of_range);
}

TEST(threads, a_rank_that_returns_early_wakes_those_who_wait_for_it) {
    Woken woken("rank 1 of 3 has returned");
    const auto body = [&](const Communicator& world) {
        if (world.rank() == 0)
            woken.count([&] { world.receive(std::vector<float>(1), 1); });
        if (world.rank() == 2)
            world.receive(std::vector<float>(1), 0); // hears of rank 0's failure
    };
    EXPECT_NE(words_of<PeerError>([&] { run_threads(3, body); }).find("rank 1 in receive of 1 float, tag 0"),
              std::string::npos);
    EXPECT_EQ(woken.count(), 1);
}

TEST(threads, a_send_to_a_rank_that_has_returned_ends) {
    Woken woken("rank 1 of 2 has returned");
    const auto body = [&](const Communicator& world) {
        if (world.rank() == 0)
            woken.count([&] { world.send(std::vector<float>(5), 1); });
    };
    EXPECT_THROW(run_threads(2, body), PeerError);
    EXPECT_EQ(woken.count(), 1);
}

TEST(threads, a_rank_that_nobody_waits_for_may_return_first) {
    std::atomic<int> done = 0;
    run_threads(3, [&](const Communicator& world) {
        if (world.rank() == 1)
            return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (world.rank() == 0)
            world.send(small_values<float>(0, 10), 2);
        else {
            std::vector<float> values(10);
            world.receive(values, 0);
            EXPECT_EQ(values, small_values<float>(0, 10));
            ++done;
        }
    });
    EXPECT_EQ(done, 1);
}

// TransformerEngine PR#951
TEST(threads, memory_of_a_rank_that_fails_is_not_read_afterwards) {
    for (int round = 0; round < 40; ++round) {
        const auto body = [&](const Communicator& world) {
            if (world.rank() == 0) {
                auto pending = world.start_send(buffer_of(small_values<float>(round, 50000)), 1);
                if (round % 2 == 0)
                    std::this_thread::yield();
                throw std::out_of_range("while sending");
            }
            std::vector<float> values(50000);
            world.receive(values, 0); // comes whole, or not at all
            EXPECT_EQ(values, small_values<float>(round, 50000));
        };
        EXPECT_THROW(run_threads(2, body), std::out_of_range);
    }
}

TEST(threads, sums_read_the_other_ranks_memory_in_place) {
    for (const int ranks : {2, 3, 5})
        run_threads(ranks, [](const Communicator& world) {
            std::vector<float> values(100000, float(world.rank()));
            world.all_reduce(values);
            EXPECT_EQ(values[99999], float(world.size() * (world.size() - 1) / 2));
            EXPECT_EQ(reigen::memory_account()->of(reigen::MemoryUse::messages).peak, 0);
        });
}

TEST(threads, every_rank_has_the_deadline_of_the_options) {
    run_threads(2, [](const Communicator& world) { EXPECT_EQ(world.deadline(), 300); });
    const reigen::ThreadOptions options = {.deadline = 0.1, .patience = 30};
    std::atomic<bool> over = false;
    const auto body = [&](const Communicator& world) {
        if (world.rank() == 0) {
            EXPECT_THROW(world.barrier(), reigen::TimeoutError);
            over = true;
        }
        while (!over)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    run_threads(2, body, options);
}

TEST(threads, worlds_may_be_made_inside_a_rank) {
    run_threads(2, [](const Communicator& outer) {
        run_threads(3, [&](const Communicator& inner) {
            std::vector<int> values = {10 * outer.rank() + inner.rank()};
            inner.all_reduce(values);
            EXPECT_EQ(values[0], 30 * outer.rank() + 3);
        });
        outer.barrier();
    });
}

// A program without MPI under mpirun runs P times over, each time with all ranks.
TEST(threads, under_a_launcher_of_several_processes_they_are_refused_unless_meant) {
    for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
        setenv(variable, "4", 1);
        const auto words = words_of<reigen::ArgumentError>([] { run_threads(2, [](const Communicator&) {}); });
        EXPECT_NE(words.find(reigen::concat("the launcher started 4 processes (", variable, ")")), std::string::npos)
            << words;
        EXPECT_THROW(reigen::check_launcher(1), reigen::ArgumentError);
        int ran = 0;
        run_threads(1, [&](const Communicator&) { ++ran; }, {.alone = true});
        EXPECT_EQ(ran, 1);
        setenv(variable, "1", 1);
        run_threads(1, [&](const Communicator&) { ++ran; });
        EXPECT_EQ(ran, 2);
        unsetenv(variable);
    }
}

TEST(threads, a_wish_for_checks_that_is_neither_yes_nor_no_is_refused) {
    const std::string before = std::getenv("REIGEN_CHECKED");
    for (const char* const wish : {"off", "2", "1 "}) {
        setenv("REIGEN_CHECKED", wish, 1);
        EXPECT_EQ(words_of<reigen::ArgumentError>([] { run_threads(2, [](const Communicator&) {}); }),
                  "REIGEN_CHECKED is neither 0 nor 1");
    }
    for (const auto& [wish, checks] : {std::pair("", false), std::pair("0", false), std::pair("1", true)}) {
        setenv("REIGEN_CHECKED", wish, 1);
        run_threads(2, [&](const Communicator& world) { EXPECT_EQ(world.backend()->compares(), checks) << wish; });
    }
    setenv("REIGEN_CHECKED", before.c_str(), 1);
}

TEST(threads, a_rank_that_cannot_be_started_ends_the_others) {
    pthread_attr_t before;
    pthread_attr_t huge;
    pthread_getattr_default_np(&before);
    pthread_getattr_default_np(&huge);
    ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t(1) << 46), 0); // the address space has room for one of them
    ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
    const auto words =
        words_of<reigen::Error>([] { run_threads(4, [](const Communicator& world) { world.barrier(); }); });
    pthread_setattr_default_np(&before);
    EXPECT_NE(words.find(" of 4 cannot be started: "), std::string::npos) << words;
}

TEST(threads, no_ranks_are_refused) {
    EXPECT_THROW(run_threads(0, [](const Communicator&) {}), reigen::ArgumentError);
    EXPECT_THROW(run_threads(-3, [](const Communicator&) {}), reigen::ArgumentError);
}

TEST(threads, under_checks_every_rank_hears_of_a_difference_before_any_of_them_ends) {
    expect_disagreement_on_every_rank(
        5, [](const Communicator& ours) { ours.all_reduce(std::vector<float>(ours.rank() == 1 ? 5 : 4)); });
}

TEST(threads, under_checks_a_wait_for_a_later_collective_hears_of_an_earlier_difference) {
    expect_disagreement_on_every_rank(5, [](const Communicator& ours) {
        auto odd = ours.start_all_reduce(Buffer<float>(ours.rank() == 1 ? 5 : 4));
        auto later = ours.start_all_reduce(Buffer<float>(4));
        later.wait();
    });
}

TEST(threads, under_checks_both_ranks_hear_that_one_is_in_another_group) {
    expect_disagreement_on_every_rank(2, [](const Communicator& ours) {
        const Communicator others = ours.split(0, ours.rank());
        (ours.rank() == 1 ? others : ours).barrier();
    });
}

TEST(threads, under_checks_a_rank_that_is_woken_says_what_it_was_about_to_do) {
    Woken woken("all_reduce of 4 float, sum: waiting for rank ");
    const auto body = [&](const Communicator& world) {
        const Communicator ours = checked(world);
        if (world.rank() == 1)
            throw std::out_of_range("boom");
        woken.count([&] { ours.all_reduce(std::vector<float>(4)); });
    };
    EXPECT_THROW(run_threads(3, body), std::out_of_range);
    EXPECT_EQ(woken.count(), 2);
}

TEST(threads_death_test, a_rank_that_never_comes_back_is_named_and_ends_the_process) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto run = [] {
        run_threads(3,
                    [](const Communicator& world) {
                        if (world.rank() == 1)
                            throw std::out_of_range("boom");
                        while (world.rank() == 2)
                            std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    },
                    {.patience = 0.2});
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(EXIT_FAILURE),
                "rank 1 failed: boom\nrank 2 of 3 did not come back within 0.2 s after that; ending the process");
}

TEST(threads_death_test, a_rank_that_simply_never_returns_ends_the_process_when_its_peers_have_waited_enough) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto run = [] {
        run_threads(3,
                    [](const Communicator& world) {
                        while (world.rank() == 1)
                            std::this_thread::sleep_for(std::chrono::milliseconds(10));
                        world.barrier();
                    },
                    {.deadline = 0.2, .patience = 0.2});
    };
    EXPECT_EXIT(run(), testing::ExitedWithCode(EXIT_FAILURE),
                "waited 0.[0-9]* s for rank 1.*\nrank 1 of 3 did not come back within 0.2 s after that");
}

} // namespace threads_test
