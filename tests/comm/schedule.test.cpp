#include "comm/schedule_world.hpp"

#include <reigen/comm/backend/operation.hpp>
#include <reigen/comm/collectives/cost.hpp>

#include <gtest/gtest.h>

#include <bit>

namespace schedule_test {

using namespace schedules_test;
using reigen::Call;
using reigen::Operation;
namespace schedules = reigen::schedules;

namespace {

constexpr int most_ranks = 64;

std::vector<Value> values(int rank, Index count) {
    std::vector<Value> result;
    for (Index i = 0; i < count; ++i)
        result.push_back(value(rank, i));
    return result;
}

/// Every element's sum over the ranks in rank order.
std::vector<Value> sums(int ranks, Index count) {
    std::vector<Value> result = values(0, count);
    for (int r = 1; r < ranks; ++r)
        for (Index i = 0; i < count; ++i)
            result[std::size_t(i)] = add(result[std::size_t(i)], value(r, i));
    return result;
}

/// Sizes 0 to 4, in an order without a pattern.
std::vector<Index> mixed_parts(int ranks) {
    std::vector<Index> parts;
    for (int r = 0; r < ranks; ++r)
        parts.push_back((r * r + 3 * r + 1) % 5);
    return parts;
}

Index total(const std::vector<Index>& parts) {
    return reigen::detail::sum_of(parts);
}

std::vector<Value> slice(const std::vector<Value>& whole, const std::vector<Index>& parts, int rank) {
    const auto first = whole.begin() + reigen::detail::starts_of(parts)[std::size_t(rank)];
    return {first, first + parts[std::size_t(rank)]};
}

/// A world in which every rank runs `schedule_of(rank)`, given `in` and expecting `out_size` elements.
template <class ScheduleOf, class In>
World world_of(int ranks, ScheduleOf schedule_of, In in, std::vector<Index> out_sizes) {
    std::vector<Rank> all;
    for (int r = 0; r < ranks; ++r)
        all.push_back({schedule_of(r), in(r), std::vector<Value>(std::size_t(out_sizes[std::size_t(r)]), 0)});
    return World(std::move(all));
}

template <class ScheduleOf>
World world_in_place(int ranks, Index count, ScheduleOf schedule_of) {
    std::vector<Rank> all;
    for (int r = 0; r < ranks; ++r)
        all.push_back({schedule_of(r), {}, values(r, count), true});
    return World(std::move(all));
}

bool overlap(const Piece& a, const Piece& b) {
    return a.memory == b.memory && a.first < b.first + b.count && b.first < a.first + a.count;
}

/// What a round writes while its messages travel: nobody else reads or writes there.
void expect_no_race(const Schedule& schedule, bool in_place) {
    const auto same_memory = [&](Piece piece) {
        if (in_place && piece.memory == Memory::in)
            piece.memory = Memory::out;
        return piece;
    };
    for (const Round& round : schedule.rounds) {
        std::vector<Piece> written;
        std::vector<Piece> read;
        for (const auto& receive : round.receives)
            written.push_back(same_memory(receive.piece));
        for (const auto& copy : round.copies)
            written.push_back(same_memory(copy.to));
        for (const auto& send : round.sends)
            read.push_back(same_memory(send.piece));
        for (std::size_t i = 0; i < written.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j)
                EXPECT_FALSE(overlap(written[i], written[j]));
            for (const Piece& piece : read)
                EXPECT_FALSE(overlap(written[i], piece));
        }
    }
}

} // namespace

TEST(schedule, all_reduce_sums_in_rank_order_with_the_closed_form_of_bytes) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks)
        for (const Index count : {Index(0), Index(1), Index(5), Index(ranks), Index(3 * ranks + 1), Index(4 * ranks)})
            for (const Index element_bytes : {Index(4), Index(4096)}) { // two ranks: whole, and by halves
                const auto of = [&](int r) { return schedules::all_reduce(r, ranks, count, element_bytes); };
                World world = world_in_place(ranks, count, of);
                ASSERT_TRUE(world.run()) << ranks << " ranks, " << count << " elements";
                const auto parts = reigen::detail::balanced_parts(count, ranks);
                const auto want = sums(ranks, count);
                for (int r = 0; r < ranks; ++r) {
                    const Rank& rank = world.ranks()[std::size_t(r)];
                    EXPECT_EQ(rank.out, want);
                    const Index own = parts[std::size_t(r)];
                    EXPECT_EQ(rank.elements, ranks == 1 ? 0 : count + (ranks - 2) * own);
                    EXPECT_LE(rank.messages, 2 * (ranks - 1));
                    if (count % ranks == 0) {
                        EXPECT_EQ(rank.elements, 2 * (ranks - 1) * count / ranks);
                    }
                    expect_no_race(rank.schedule, true);
                }
            }
}

TEST(schedule, two_ranks_exchange_a_small_vector_in_one_message) {
    EXPECT_EQ(schedules::all_reduce(0, 2, 1024, 4).rounds.size(), 1U);
    EXPECT_EQ(schedules::all_reduce(0, 2, 1025, 4).rounds.size(), 2U);
    EXPECT_EQ(schedules::all_reduce(0, 3, 3, 4).rounds.size(), 2U);
}

TEST(schedule, reduce_scatter_sums_in_rank_order_for_any_parts) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
        const auto parts = mixed_parts(ranks);
        const auto of = [&](int r) { return schedules::reduce_scatter(r, ranks, parts); };
        World world = world_of(ranks, of, [&](int r) { return values(r, total(parts)); }, parts);
        ASSERT_TRUE(world.run()) << ranks << " ranks";
        const auto want = sums(ranks, total(parts));
        for (int r = 0; r < ranks; ++r) {
            const Rank& rank = world.ranks()[std::size_t(r)];
            EXPECT_EQ(rank.out, slice(want, parts, r));
            EXPECT_EQ(rank.elements, total(parts) - parts[std::size_t(r)]);
            EXPECT_LE(rank.messages, ranks - 1);
            expect_no_race(rank.schedule, false);
        }
    }
}

TEST(schedule, all_gather_brings_every_part_to_its_place) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
        const auto parts = mixed_parts(ranks);
        std::vector<Value> want;
        for (int r = 0; r < ranks; ++r)
            for (const Value v : values(r, parts[std::size_t(r)]))
                want.push_back(v);
        const auto of = [&](int r) { return schedules::all_gather(r, ranks, parts); };
        World world = world_of(
            ranks, of, [&](int r) { return values(r, parts[std::size_t(r)]); },
            std::vector<Index>(std::size_t(ranks), total(parts)));
        ASSERT_TRUE(world.run()) << ranks << " ranks";
        for (int r = 0; r < ranks; ++r) {
            const Rank& rank = world.ranks()[std::size_t(r)];
            EXPECT_EQ(rank.out, want);
            EXPECT_EQ(rank.elements, (ranks - 1) * parts[std::size_t(r)]);
            EXPECT_EQ(rank.messages, parts[std::size_t(r)] > 0 ? ranks - 1 : 0);
            expect_no_race(rank.schedule, false);
        }
    }
}

TEST(schedule, broadcast_reaches_all_from_any_root_in_a_logarithm_of_hops) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks)
        for (const int root : {0, ranks / 2, ranks - 1}) {
            const auto of = [&](int r) { return schedules::broadcast(r, ranks, 3, root); };
            World world = world_in_place(ranks, 3, of);
            ASSERT_TRUE(world.run()) << ranks << " ranks";
            Index elements = 0;
            for (const Rank& rank : world.ranks()) {
                EXPECT_EQ(rank.out, values(root, 3));
                EXPECT_LE(rank.messages, std::bit_width(unsigned(ranks - 1)));
                EXPECT_LE(rank.schedule.rounds.size(), 2U);
                elements += rank.elements;
            }
            EXPECT_EQ(elements, 3 * (ranks - 1));
        }
}

TEST(schedule, all_to_all_transposes_uneven_parts) {
    const auto part = [](int from, int to) { return Index((3 * from + 5 * to) % 4); };
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
        std::vector<std::vector<Index>> out_parts(static_cast<std::size_t>(ranks));
        std::vector<std::vector<Index>> in_parts(static_cast<std::size_t>(ranks));
        std::vector<Index> in_totals;
        for (int r = 0; r < ranks; ++r) {
            for (int peer = 0; peer < ranks; ++peer) {
                out_parts[std::size_t(r)].push_back(part(r, peer));
                in_parts[std::size_t(r)].push_back(part(peer, r));
            }
            in_totals.push_back(total(in_parts[std::size_t(r)]));
        }
        const auto of = [&](int r) {
            return schedules::all_to_all(r, ranks, out_parts[std::size_t(r)], in_parts[std::size_t(r)]);
        };
        World world =
            world_of(ranks, of, [&](int r) { return values(r, total(out_parts[std::size_t(r)])); }, in_totals);
        ASSERT_TRUE(world.run()) << ranks << " ranks";
        for (int r = 0; r < ranks; ++r) {
            std::vector<Value> want;
            for (int from = 0; from < ranks; ++from) {
                const auto& parts = out_parts[std::size_t(from)];
                for (const Value v : slice(values(from, total(parts)), parts, r))
                    want.push_back(v);
            }
            const Rank& rank = world.ranks()[std::size_t(r)];
            EXPECT_EQ(rank.out, want);
            EXPECT_EQ(rank.elements, total(out_parts[std::size_t(r)]) - part(r, r));
            expect_no_race(rank.schedule, false);
        }
    }
}

TEST(schedule, a_barrier_is_a_logarithm_of_empty_messages) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
        World world = world_in_place(ranks, 0, [&](int r) { return schedules::barrier(r, ranks); });
        ASSERT_TRUE(world.run()) << ranks << " ranks";
        for (const Rank& rank : world.ranks()) {
            EXPECT_EQ(rank.messages, std::bit_width(unsigned(ranks - 1)));
            EXPECT_EQ(rank.elements, 0);
        }
    }
}

TEST(schedule, after_a_barrier_every_rank_depends_on_every_other) {
    for (int ranks = 1; ranks <= most_ranks; ++ranks) {
        std::vector<std::uint64_t> heard;
        for (int r = 0; r < ranks; ++r)
            heard.push_back(std::uint64_t(1) << r);
        const auto rounds = schedules::barrier(0, ranks).rounds.size();
        for (std::size_t k = 0; k < rounds; ++k) {
            const auto before = heard;
            for (int r = 0; r < ranks; ++r) {
                const Schedule barrier = schedules::barrier(r, ranks);
                for (const auto& receive : barrier.rounds[k].receives)
                    heard[std::size_t(r)] |= before[std::size_t(receive.peer)];
            }
        }
        for (const std::uint64_t ranks_heard : heard)
            EXPECT_EQ(std::popcount(ranks_heard), ranks);
    }
}

TEST(schedule, what_it_sends_is_known_without_making_it) {
    for (const int ranks : {1, 2, 3, 5, 8, 13})
        for (const Index scale : {0, 1, 3, 700})
            for (int rank = 0; rank < ranks; ++rank) {
                auto parts = mixed_parts(ranks);
                for (Index& part : parts)
                    part *= scale;
                const Index mine = parts[std::size_t(rank)];
                Operation operation;
                operation.type = reigen::DataType::int16;
                const auto expect_alike = [&](Call call, Index in, Index out) {
                    operation.call = call;
                    operation.in_size = in;
                    operation.out_size = out;
                    reigen::Traffic want;
                    for (const auto& round : schedule(operation, rank, ranks).rounds)
                        for (const auto& send : round.sends)
                            want = want + reigen::Traffic{1, 2 * send.piece.count};
                    EXPECT_EQ(traffic_of(operation, rank, ranks), want)
                        << to_string(operation) << ", rank " << rank << " of " << ranks;
                };
                operation.peer = ranks / 2;
                expect_alike(Call::broadcast, scale, scale);
                expect_alike(Call::barrier, 0, 0);
                for (const Index count : {scale, total(parts), Index(2048), Index(2049)})
                    expect_alike(Call::all_reduce, count, count);
                expect_alike(Call::all_gather, scale, scale * ranks);
                expect_alike(Call::reduce_scatter, scale * ranks, scale);
                operation.parts = parts;
                operation.in_parts = parts;
                expect_alike(Call::all_gather, mine, total(parts));
                expect_alike(Call::reduce_scatter, total(parts), mine);
                expect_alike(Call::all_to_all, total(parts), total(parts));
            }
}

TEST(schedule, one_rank_sends_nothing) {
    for (const auto call : {reigen::Call::all_reduce, reigen::Call::all_gather, reigen::Call::reduce_scatter,
                            reigen::Call::broadcast, reigen::Call::barrier}) {
        reigen::Operation operation;
        operation.call = call;
        operation.in_size = operation.out_size = 7;
        for (const Round& round : reigen::schedule(operation, 0, 1).rounds) {
            EXPECT_TRUE(round.sends.empty());
            EXPECT_TRUE(round.receives.empty());
        }
    }
}

TEST(schedule, the_world_of_this_test_notices_a_deadlock_and_a_wrong_order) {
    const Piece one{Memory::out, 0, 1};
    const Piece other{Memory::scratch, 0, 1};
    const auto sends_first = [&](int r) {
        return Schedule{{Round{{}, {{1 - r, one}}, {}, {}}, Round{{{1 - r, other}}, {}, {}, {}}}, 1};
    };
    EXPECT_FALSE(world_in_place(2, 1, sends_first).run());
    const auto own_first = [&](int r) {
        return Schedule{{Round{{{1 - r, other}}, {{1 - r, one}}, {}, {{{one, other}, one}}}}, 1};
    };
    World world = world_in_place(2, 1, own_first);
    EXPECT_TRUE(world.run());
    EXPECT_EQ(world.ranks()[0].out, sums(2, 1));
    EXPECT_NE(world.ranks()[1].out, sums(2, 1));
}

} // namespace schedule_test
