#include "comm/values.hpp"

#include <reigen/comm/checked.hpp>
#include <reigen/comm/mesh.hpp>
#include <reigen/comm/texts.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace checked_test {

namespace {

using reigen::Axes;
using reigen::Buffer;
using reigen::DisagreementError;

/// What the call throws, or nothing.
std::string disagreement_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const DisagreementError& error) {
        return error.what();
    } catch (const std::exception& error) {
        return reigen::concat("not a DisagreementError: ", error.what());
    }
    return "";
}

/// That all ranks got one text, with these words in it; told over `world`, not over what failed.
void expect_same_text(const Communicator& world, const std::string& text, const std::vector<std::string>& words) {
    const auto texts = reigen::all_gather_texts(world, text);
    for (std::size_t r = 0; r < texts.size(); ++r)
        EXPECT_EQ(texts[r], text) << "on rank " << r;
    for (const std::string& word : words)
        EXPECT_NE(text.find(word), std::string::npos) << '"' << word << "\" is not in: " << text;
}

/// Rank 1 makes the odd call, the others the usual one: all of them hear of it, and of what each called.
void expect_disagreement(const std::function<void(const Communicator&)>& usual,
                         const std::function<void(const Communicator&)>& odd, const std::vector<std::string>& words) {
    for (const int ranks : {2, 3, 4})
        on_world(ranks, [&](const Communicator& world) {
            const Communicator ours = checked(world);
            usual(ours);
            const auto& call = world.rank() == 1 ? odd : usual;
            expect_same_text(world, disagreement_of([&] { call(ours); }), words);
            EXPECT_TRUE(ours.failed());
            EXPECT_THROW(ours.barrier(), reigen::CommunicationError);
            EXPECT_FALSE(world.failed());
        });
}

template <class T = float>
auto all_reduce_of(Index count, Reduction reduction = Reduction::sum) {
    return [=](const Communicator& ranks) { ranks.all_reduce(std::vector<T>(std::size_t(count)), reduction); };
}

auto broadcast_from(int root) {
    return [=](const Communicator& ranks) { ranks.broadcast(std::vector<int>(4), root); };
}

/// Rank r's part has `first` + r elements.
auto all_gather_from(Index first) {
    return [=](const Communicator& ranks) {
        std::vector<Index> parts;
        for (int r = 0; r < ranks.size(); ++r)
            parts.push_back(first + r);
        std::vector<float> all(std::size_t(reigen::detail::sum_of(parts)));
        ranks.all_gather(std::vector<float>(std::size_t(first + ranks.rank())), all, parts);
    };
}

auto reduce_scatter_of(Index each) {
    return [=](const Communicator& ranks) {
        std::vector<double> all(std::size_t(each * ranks.size()));
        ranks.reduce_scatter(all, std::vector<double>(std::size_t(each)));
    };
}

/// Everybody gives everybody `each`; takes `from_first` from rank 0, unless it is rank 0.
auto all_to_all_of(Index each, Index from_first) {
    return [=](const Communicator& ranks) {
        const std::vector<Index> gives(std::size_t(ranks.size()), each);
        std::vector<Index> takes = gives;
        if (ranks.rank() != 0)
            takes[0] = from_first;
        ranks.all_to_all(std::vector<int>(std::size_t(reigen::detail::sum_of(gives))), gives,
                         std::vector<int>(std::size_t(reigen::detail::sum_of(takes))), takes);
    };
}

void barrier(const Communicator& ranks) {
    ranks.barrier();
}

} // namespace

TEST(checked, another_count) {
    expect_disagreement(all_reduce_of(24), all_reduce_of(12),
                        {"the ranks call different things, in collective 1 of this group of ", "rank 0",
                         "all_reduce of 24 float, sum", "rank 1: all_reduce of 12 float, sum"});
}

TEST(checked, another_operation) {
    expect_disagreement(all_reduce_of(4), barrier, {"all_reduce of 4 float, sum", "rank 1: barrier"});
    expect_disagreement(all_reduce_of<int>(4), broadcast_from(0),
                        {"all_reduce of 4 int32, sum", "rank 1: broadcast of 4 int32 from rank 0"});
}

TEST(checked, another_element_type_of_the_same_size) {
    expect_disagreement(all_reduce_of<float>(4), all_reduce_of<std::int32_t>(4),
                        {"all_reduce of 4 float", "rank 1: all_reduce of 4 int32"});
}

TEST(checked, another_reduction) {
    expect_disagreement(all_reduce_of(4), all_reduce_of(4, Reduction::max),
                        {"all_reduce of 4 float, sum", "rank 1: all_reduce of 4 float, max"});
}

TEST(checked, another_root) {
    expect_disagreement(broadcast_from(0), broadcast_from(1),
                        {"from rank 0", "rank 1: broadcast of 4 int32 from rank 1"});
}

TEST(checked, other_parts_that_give_this_rank_as_much) {
    expect_disagreement(
        [](const Communicator& ranks) {
            std::vector<Index> parts(std::size_t(ranks.size()), 2);
            ranks.all_gather(std::vector<float>(2), std::vector<float>(std::size_t(2 * ranks.size())), parts);
        },
        [](const Communicator& ranks) {
            std::vector<Index> parts(std::size_t(ranks.size()), 2);
            parts[0] = 3;
            ranks.all_gather(std::vector<float>(2), std::vector<float>(std::size_t(2 * ranks.size() + 1)), parts);
        },
        {"in parts of 2 2", "rank 1: all_gather of ", "in parts of 3 2"});
    expect_disagreement(all_gather_from(1), all_gather_from(2), {"in parts of 1 2", "in parts of 2 3"});
    expect_disagreement(reduce_scatter_of(2), reduce_scatter_of(3), {"reduce_scatter of ", "double, sum"});
}

TEST(checked, all_to_all_whose_pairs_do_not_fit) {
    expect_disagreement(all_to_all_of(2, 2), all_to_all_of(2, 3),
                        {"the ranks exchange different things", "rank 1: takes 3 elements from rank 0, which gives 2"});
}

TEST(checked, one_rank_leaves_a_collective_out) {
    for (const int ranks : {2, 3, 4})
        on_world(ranks, [&](const Communicator& world) {
            const Communicator ours = checked(world);
            const auto step = [&] {
                if (world.rank() != 1)
                    ours.barrier();
                ours.all_reduce(std::vector<float>(3));
            };
            expect_same_text(world, disagreement_of(step), {"in collective 0", "rank 1: all_reduce of 3 float"});
        });
}

TEST(checked, started_collectives_too) {
    on_world(3, [](const Communicator& world) {
        const Communicator ours = checked(world);
        auto first = ours.start_all_reduce(Buffer<float>(5));
        auto second = ours.start_all_reduce(Buffer<float>(world.rank() == 2 ? 6 : 7));
        first.wait();
        expect_same_text(world, disagreement_of([&] { second.wait(); }),
                         {"in collective 1", "rank 2: all_reduce of 6"});
    });
}

TEST(checked, many_exchanges_in_flight_do_not_mix) {
    on_every_world([](const Communicator& world) {
        const Communicator ours = checked(world);
        const std::vector<Index> ones(std::size_t(world.size()), 1);
        std::vector<reigen::Pending<int>> exchanges;
        std::vector<reigen::Pending<int>> sums;
        for (int round = 0; round < 5; ++round) {
            Buffer<int> out(world.size());
            for (int to = 0; to < world.size(); ++to)
                out[to] = 100 * round + 10 * world.rank() + to;
            exchanges.push_back(ours.start_all_to_all(std::move(out), ones, Buffer<int>(world.size()), ones));
            sums.push_back(ours.start_all_reduce(buffer_of(std::vector<int>{round})));
        }
        for (int round = 4; round >= 0; --round) {
            EXPECT_EQ(sums[std::size_t(round)].wait()[0], round * world.size());
            const auto in = exchanges[std::size_t(round)].wait();
            for (int from = 0; from < world.size(); ++from)
                EXPECT_EQ(in[from], 100 * round + 10 * from + world.rank());
        }
    });
}

TEST(checked, a_rank_in_another_group) {
    on_world(2, [](const Communicator& world) {
        const Communicator ours = checked(world);
        const Communicator pair = ours.split(0, world.rank());
        const std::string text =
            disagreement_of([&] { (world.rank() == 1 ? pair : ours).all_reduce(std::vector<int>(4)); });
        EXPECT_NE(text.find("waits for this one in another group, in all_reduce of 4 int32"), std::string::npos)
            << text;
        world.barrier();
    });
}

TEST(checked, groups_in_another_order_where_nobody_waits) {
    on_world(2, [](const Communicator& world) {
        const Communicator ours = checked(world);
        const Communicator pair = ours.split(0, world.rank());
        const Communicator& first = world.rank() == 0 ? ours : pair;
        const Communicator& second = world.rank() == 0 ? pair : ours;
        auto one = first.start_all_reduce(buffer_of(std::vector<int>{1}));
        auto two = second.start_all_reduce(buffer_of(std::vector<int>{1}));
        EXPECT_EQ(one.wait()[0], 2);
        EXPECT_EQ(two.wait()[0], 2);
    });
}

TEST(checked, a_disagreement_is_its_groups_alone) {
    on_world(4, [](const Communicator& world) {
        const reigen::Mesh mesh(checked(world), {{Axes::dp, 2}, {Axes::tp, 2}});
        const bool odd = world.rank() == 3;
        const std::string text = disagreement_of([&] { mesh[Axes::tp].all_reduce(std::vector<float>(odd ? 5 : 4)); });
        EXPECT_EQ(text.empty(), world.rank() < 2) << text;
        EXPECT_EQ(mesh[Axes::tp].failed(), world.rank() >= 2);
        std::vector<int> sum = {1};
        mesh[Axes::dp].all_reduce(sum);
        EXPECT_EQ(sum[0], 2);
    });
}

TEST(checked, meshes_of_other_sizes) {
    on_world(4, [](const Communicator& world) {
        const Communicator ours = checked(world);
        const int dp = world.rank() == 2 ? 1 : 2;
        expect_same_text(world, disagreement_of([&] { reigen::Mesh(ours, {{Axes::dp, dp}, {Axes::tp, 4 / dp}}); }),
                         {"Mesh of axes dp=2 x tp=2", "rank 2: Mesh of axes dp=1 x tp=4"});
    });
}

TEST(checked, fields_that_an_algorithm_needs_alike) {
    on_every_world([](const Communicator& world) {
        const Communicator ours = checked(world);
        const auto agree = [&](Index tokens, double scale) {
            ours.agree("shift", [&] { return std::vector<reigen::Field>{{"tokens", tokens}, {"scale", scale}}; });
        };
        agree(7, 0.5);
        if (world.size() == 1)
            return;
        const bool odd = world.rank() == 1;
        expect_same_text(
            world, disagreement_of([&] { agree(7, odd ? 0.1 + 0.2 : 0.3); }),
            {"shift of tokens 7, scale 0.29999999999999999", "rank 1: shift of tokens 7, scale 0.30000000000000004"});
    });
}

TEST(checked, texts_longer_than_a_record_still_differ) {
    on_world(3, [](const Communicator& world) {
        const Communicator ours = checked(world);
        const std::string word(600, 'x');
        const std::string odd = word + (world.rank() == 1 ? "y" : "z");
        expect_same_text(world, disagreement_of([&] {
                             ours.agree("words", [&] { return std::vector<reigen::Field>{{"word", odd}}; });
                         }),
                         {"xxx...", "rank 1: words"});
    });
}

TEST(checked, an_agreement_costs_nothing_where_nobody_checks) {
    on_world(2, [](const Communicator& world) {
        if (world.backend()->compares())
            return; // as the environment wants it
        bool called = false;
        world.agree("shift", [&] { return called = true, std::vector<reigen::Field>(); });
        EXPECT_FALSE(called);
    });
}

TEST(checked, changes_no_result_and_no_traffic) {
    on_every_world([](const Communicator& world) {
        const Communicator ours = checked(world);
        std::vector<float> plain = wild_values<float>(world.rank(), 1001);
        std::vector<float> same = plain;
        const reigen::Traffic before = world.traffic();
        world.all_reduce(plain);
        const reigen::Traffic used = world.traffic() - before;
        ours.all_reduce(same);
        EXPECT_TRUE(same_bits(plain, same));
        EXPECT_EQ(ours.traffic(), used);
    });
}

TEST(checked, a_rank_that_does_not_come_is_named_at_the_deadline) {
    on_world(3, [](const Communicator& world) {
        const Communicator ours = checked(world);
        ours.set_deadline(0.5);
        if (world.rank() != 1) {
            try {
                ours.all_reduce(std::vector<float>(24));
                ADD_FAILURE() << "came through";
            } catch (const reigen::TimeoutError& error) {
                EXPECT_NE(std::string(error.what()).find("for rank 1 to call all_reduce of 24 float, sum too"),
                          std::string::npos)
                    << error.what();
            }
        }
        world.barrier();
    });
}

} // namespace checked_test
