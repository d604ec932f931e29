#include <reigen/mpi.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace mpi_backend_test {

// The test main has initialised MPI, so every test here is a host program that owns MPI.

using reigen::mpi_communicator;

namespace {

/// All ranks are here and nobody has left anything in flight on the world.
void meet() {
    MPI_Barrier(MPI_COMM_WORLD);
}

void expect_sums(const Communicator& ranks, Index count) {
    auto values = small_values<double>(ranks.rank(), count);
    ranks.all_reduce(values);
    for (Index i = 0; i < count; ++i) {
        double want = 0;
        for (int r = 0; r < ranks.size(); ++r)
            want += small_value(r, i);
        ASSERT_EQ(values[std::size_t(i)], want) << "element " << i << " of " << count;
    }
}

} // namespace

TEST(mpi, messages_longer_than_the_block_limit_go_in_blocks) {
    for (const Index block : {1, 7, 8, 64, 1000}) {
        const Communicator ranks = mpi_communicator(MPI_COMM_WORLD, {.block_bytes = block});
        ranks.set_deadline(30);
        for (const Index count : {0, 1, 2, 125, 126, 300})
            expect_sums(ranks, count);
        std::vector<std::int16_t> all(std::size_t(37 * ranks.size()));
        ranks.all_gather(small_values<std::int16_t>(ranks.rank(), 37), all);
        for (int r = 0; r < ranks.size(); ++r)
            EXPECT_TRUE(std::equal(all.begin() + 37 * r, all.begin() + 37 * (r + 1),
                                   small_values<std::int16_t>(r, 37).begin()));
    }
    meet();
}

namespace {

/// Each rank gives what it has of its part to the next rank, and a single element to the others.
void all_to_all_by(const std::vector<Index>& parts, const Communicator& ranks, auto& part, auto& all) {
    const auto gives = [&](int from, int to) {
        const Index size = parts[std::size_t(from)];
        const Index rest = size - (ranks.size() - 2);
        return rest < 0 ? 0 : to == (from + 1) % ranks.size() ? rest : from == to ? 0 : Index(1);
    };
    std::vector<Index> out_parts, in_parts;
    for (int peer = 0; peer < ranks.size(); ++peer) {
        out_parts.push_back(gives(ranks.rank(), peer));
        in_parts.push_back(gives(peer, ranks.rank()));
    }
    if (ranks.size() == 1)
        return;
    const auto out = std::span(part.data(), std::size_t(total(out_parts)));
    ranks.all_to_all(out, out_parts, std::span(all.data(), std::size_t(total(in_parts))), in_parts);
}

/// All collectives, on memory from anywhere and on Buffers, in which others may read where it lies.
void expect_alike(const Communicator& one, const Communicator& other, Index count) {
    const auto parts = uneven_parts(one.size());
    std::vector<Index> scaled;
    for (const Index part : parts)
        scaled.push_back(part * count);
    const Index mine = scaled[std::size_t(one.rank())];
    const auto whole = wild_values<float>(one.rank(), total(scaled));
    const auto run = [&](const Communicator& ranks, auto all, auto part) {
        std::vector<float> results;
        const auto note = [&](const auto& range) { results.insert(results.end(), range.begin(), range.end()); };
        std::copy(whole.begin(), whole.end(), all.begin());
        ranks.all_reduce(all), note(all);
        ranks.reduce_scatter(all, part, Reduction::sum, scaled), note(part);
        ranks.all_gather(part, all, scaled), note(all);
        ranks.broadcast(all, ranks.size() - 1), note(all);
        all_to_all_by(scaled, ranks, part, all), note(all);
        return results;
    };
    const auto want = run(other, std::vector<float>(whole.size()), std::vector<float>(static_cast<std::size_t>(mine)));
    EXPECT_TRUE(same_bits(
        run(one, std::vector<float>(whole.size()), std::vector<float>(static_cast<std::size_t>(mine))), want));
    EXPECT_TRUE(same_bits(run(one, reigen::Buffer<float>(Index(whole.size())), reigen::Buffer<float>(mine)), want));
    // One rank's lies where others cannot read it.
    EXPECT_TRUE(same_bits(one.rank() == 0 ? run(one, reigen::Buffer<float>(Index(whole.size())),
                                                std::vector<float>(static_cast<std::size_t>(mine)))
                                          : run(one, std::vector<float>(whole.size()), reigen::Buffer<float>(mine)),
                          want));
}

} // namespace

TEST(mpi, shared_memory_gives_the_bits_of_messages) {
    const Communicator messages = mpi_communicator(MPI_COMM_WORLD, {.shared_memory = reigen::SharedMemory::never});
    for (const Index chunk : {256, 1024, 128 << 10}) {
        const Communicator shared =
            mpi_communicator(MPI_COMM_WORLD, {.shared_memory = reigen::SharedMemory::always, .chunk_bytes = chunk});
        for (const Communicator* const ranks : {&messages, &shared})
            ranks->set_deadline(60);
        for (const Index count : {0, 1, 100, 2000, 30000, 300000})
            if (count <= 20 * chunk)
                expect_alike(shared, messages, count);
    }
    meet();
}

TEST(mpi, an_all_reduce_of_several_nodes_sums_in_each_and_then_across_them) {
    const Communicator plain = mpi_communicator(MPI_COMM_WORLD, {.shared_memory = reigen::SharedMemory::never});
    const Communicator nodes = mpi_communicator(MPI_COMM_WORLD, {.node_ranks = 2});
    plain.set_deadline(30);
    nodes.set_deadline(30);
    const bool equal = nodes.size() % 2 == 0;
    for (const Index count : {0, 1, 2, 3, 100, 5003, 100000}) {
        auto integers = small_values<double>(nodes.rank(), count);
        auto want = integers;
        nodes.all_reduce(integers);
        plain.all_reduce(want);
        EXPECT_EQ(integers, want) << count;
        auto rounded = wild_values<bfloat16>(nodes.rank(), count); // once
        auto want_rounded = rounded;
        nodes.all_reduce(rounded);
        plain.all_reduce(want_rounded);
        EXPECT_TRUE(same_bits(rounded, want_rounded)) << count;
        if (!equal || nodes.size() < 4)
            continue;
        std::vector<float> in_order(static_cast<std::size_t>(count));
        for (int node = 0; node < nodes.size() / 2; ++node) {
            const auto first = wild_values<float>(2 * node, count);
            const auto second = wild_values<float>(2 * node + 1, count);
            for (std::size_t i = 0; i < in_order.size(); ++i)
                in_order[i] = node == 0 ? first[i] + second[i] : in_order[i] + (first[i] + second[i]);
        }
        const auto before = nodes.traffic();
        auto values = wild_values<float>(nodes.rank(), count);
        nodes.all_reduce(values);
        EXPECT_TRUE(same_bits(values, in_order)) << count;
        // By its schedules: of a vector among 2, and of its half among the nodes.
        const Index half = count / 2 + (nodes.rank() % 2 < count % 2 ? 1 : 0);
        const Index of_nodes = nodes.size() / 2;
        const Index share = half / of_nodes + (nodes.rank() / 2 < half % of_nodes ? 1 : 0);
        const Index sent =
            (count - half) + half + (of_nodes == 2 && 4 * half <= 4096 ? half : half + (of_nodes - 2) * share);
        EXPECT_EQ((nodes.traffic() - before).bytes, 4 * sent) << count;
    }
    meet();
}

namespace {

/// Nodes of two ranks, and what this rank is on them.
struct PairsOfRanks {
    Communicator plain = mpi_communicator(MPI_COMM_WORLD, {.shared_memory = reigen::SharedMemory::never});
    Communicator nodes = mpi_communicator(MPI_COMM_WORLD, {.node_ranks = 2});
    reigen::detail::LevelsTraffic traffic = {nodes.rank() % 2, 2, nodes.rank() / 2, std::max(nodes.size() / 2, 1)};
    bool two_levels = nodes.size() >= 4 && nodes.size() % 2 == 0;

    PairsOfRanks() {
        plain.set_deadline(30);
        nodes.set_deadline(30);
    }

    /// What `nodes` sends in a call, if it goes over two levels.
    template <class Call>
    void expect_traffic(reigen::Traffic want, Call call) const {
        const auto before = nodes.traffic();
        call();
        if (two_levels) {
            EXPECT_EQ((nodes.traffic() - before).bytes, want.bytes);
            EXPECT_EQ((nodes.traffic() - before).messages, want.messages);
        }
    }
};

template <class T>
void expect_same_gathers(const PairsOfRanks& pairs, const std::vector<Index>& parts) {
    const Index mine = parts[std::size_t(pairs.nodes.rank())];
    const auto part = wild_values<T>(pairs.nodes.rank(), mine);
    std::vector<T> want(std::size_t(total(parts)));
    pairs.plain.all_gather(part, want, parts);
    std::vector<T> all(want.size());
    pairs.expect_traffic(pairs.traffic.of_all_gather(parts, sizeof(T)),
                         [&] { pairs.nodes.all_gather(part, all, parts); });
    EXPECT_TRUE(same_bits(all, want)) << all.size();
    auto buffer = reigen::Buffer<T>::zeros(Index(all.size())); // with its own part in place
    const Index first = total(std::vector(parts.begin(), parts.begin() + pairs.nodes.rank()));
    std::ranges::copy(part, buffer.begin() + first);
    pairs.nodes.all_gather(buffer.span().subspan(std::size_t(first), std::size_t(mine)), buffer, parts);
    EXPECT_TRUE(same_bits(std::vector<T>(buffer.begin(), buffer.end()), want)) << all.size();
}

template <class T>
void expect_same_broadcasts(const PairsOfRanks& pairs, Index count) {
    for (int root = 0; root < pairs.nodes.size(); ++root) {
        auto values = wild_values<T>(pairs.nodes.rank(), count);
        const Index bytes = count * Index(sizeof(T));
        const auto sent = bytes >= reigen::detail::TwoLevelBroadcast::least_bytes
                              ? pairs.traffic.of_broadcast(count, root, sizeof(T))
                              : reigen::detail::sends_of_broadcast(bytes, pairs.nodes.rank(), pairs.nodes.size(), root);
        pairs.expect_traffic(sent, [&] { pairs.nodes.broadcast(values, root); });
        EXPECT_TRUE(same_bits(values, wild_values<T>(root, count))) << count << " from " << root;
    }
}

} // namespace

TEST(mpi, an_all_gather_of_several_nodes_crosses_in_slices) {
    const PairsOfRanks pairs;
    const auto uneven = uneven_parts(pairs.nodes.size());
    for (const Index scale : {0, 1, 7, 1000, 20000}) {
        std::vector<Index> parts;
        for (const Index part : uneven)
            parts.push_back(part * scale);
        expect_same_gathers<float>(pairs, parts);
        expect_same_gathers<bfloat16>(pairs, parts);
        expect_same_gathers<std::int8_t>(pairs, std::vector<Index>(uneven.size(), scale));
        expect_same_gathers<double>(pairs, std::vector<Index>(uneven.size(), scale));
    }
    std::vector<Index> only_last(uneven.size(), 0);
    only_last.back() = 5;
    expect_same_gathers<std::int64_t>(pairs, only_last);
    meet();
}

TEST(mpi, an_all_gather_of_equal_parts_sends_as_much_over_nodes_as_without) {
    const PairsOfRanks pairs;
    if (!pairs.two_levels)
        return;
    const Index count = 6 * pairs.nodes.size();
    const auto parts = std::vector<Index>(std::size_t(pairs.nodes.size()), count);
    EXPECT_EQ(pairs.traffic.of_all_gather(parts, 4).bytes, 4 * (pairs.nodes.size() - 1) * count);
    std::vector<float> all(std::size_t(count * pairs.nodes.size()));
    pairs.expect_traffic(pairs.traffic.of_all_gather(parts, 4),
                         [&] { pairs.nodes.all_gather(wild_values<float>(pairs.nodes.rank(), count), all); });
    meet();
}

TEST(mpi, a_broadcast_over_several_nodes_crosses_in_slices) {
    const PairsOfRanks pairs;
    for (const Index count : {0, 1, 3, 8191, 8192, 40003}) {
        expect_same_broadcasts<float>(pairs, count);
        expect_same_broadcasts<std::uint8_t>(pairs, count);
        expect_same_broadcasts<bfloat16>(pairs, count);
    }
    meet();
}

TEST(mpi, a_rank_knows_the_first_of_its_node) {
    const PairsOfRanks pairs;
    EXPECT_EQ(pairs.nodes.backend()->node(), pairs.nodes.rank() / 2 * 2);
    EXPECT_EQ(pairs.nodes.split(0, -pairs.nodes.rank()).backend()->node(),
              (pairs.nodes.size() - 1 - pairs.nodes.rank()) / 2 * 2); // numbered backwards, and again in twos
    EXPECT_EQ(mpi_communicator(MPI_COMM_WORLD).backend()->node(), 0);
    meet();
}

TEST(mpi, collectives_over_nodes_that_are_started_together_keep_their_order) {
    const PairsOfRanks pairs;
    const Communicator& ranks = pairs.nodes;
    for (int round = 0; round < 25; ++round) {
        std::vector<reigen::Pending<float>> sums;
        std::vector<reigen::Pending<float>> told;
        for (int k = 0; k < 6; ++k) {
            sums.push_back(ranks.start_all_reduce(buffer_of(std::vector<float>(500, float(ranks.rank() + k)))));
            told.push_back(ranks.start_broadcast(buffer_of(std::vector<float>(9000, float(10 * ranks.rank() + k))),
                                                 k % ranks.size()));
            // Ranks come late in turn, and to other places of the row.
            if ((round + 2 * k + 3 * ranks.rank()) % 5 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(300));
            if ((round + k + ranks.rank()) % 3 == 0)
                reigen::poll();
        }
        for (int k = 5; k >= 0; --k) {
            const auto ranks_sum = float(ranks.size() * (ranks.size() - 1) / 2 + k * ranks.size());
            EXPECT_EQ(vector_of(sums[std::size_t(k)].wait()), std::vector<float>(500, ranks_sum)) << round << ' ' << k;
            EXPECT_EQ(vector_of(told[std::size_t(k)].wait()),
                      std::vector<float>(9000, float(10 * (k % ranks.size()) + k)))
                << round << ' ' << k;
        }
    }
    meet();
}

TEST(mpi, shared_memory_that_ranks_want_differently_is_not_used) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const auto choice = rank == 0 ? reigen::SharedMemory::never : reigen::SharedMemory::automatic;
    const Communicator ranks = mpi_communicator(MPI_COMM_WORLD, {.shared_memory = choice});
    const auto* const backend = dynamic_cast<const reigen::MpiBackend*>(ranks.backend().get());
    if (backend != nullptr) { // not compared, as REIGEN_CHECKED would have it
        EXPECT_FALSE(backend->shares_memory());
    }
    expect_sums(ranks, 100);
    meet();
}

TEST(mpi, blocks_of_started_messages_with_one_tag_do_not_mix) {
    const Communicator ranks = mpi_communicator(MPI_COMM_WORLD, {.block_bytes = 10});
    ranks.set_deadline(30);
    if (ranks.size() > 1) {
        const int next = (ranks.rank() + 1) % ranks.size();
        const int previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
        std::vector<reigen::Pending<float>> receives;
        std::vector<reigen::Pending<float>> sends;
        for (int k = 0; k < 4; ++k) {
            receives.push_back(ranks.start_receive(reigen::Buffer<float>(20 + k), previous));
            sends.push_back(ranks.start_send(buffer_of(small_values<float>(ranks.rank() + k, 20 + k)), next));
        }
        for (int k = 3; k >= 0; --k)
            EXPECT_EQ(vector_of(receives[std::size_t(k)].wait()), small_values<float>(previous + k, 20 + k));
        for (auto& send : sends)
            send.wait();
    }
    meet();
}

TEST(mpi, a_guest_works_on_any_part_of_the_hosts_world) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    {
        const Communicator ranks = mpi_communicator(half);
        ranks.set_deadline(30);
        int half_rank = 0;
        MPI_Comm_rank(half, &half_rank);
        EXPECT_EQ(ranks.rank(), half_rank);
        expect_sums(ranks, 1000);
        MPI_Comm_free(&half); // what was duplicated does not depend on it
        expect_sums(ranks, 1000);
    }
    meet();
}

TEST(mpi, a_guest_leaves_the_hosts_messages_and_error_handler_alone) {
    MPI_Errhandler before = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    const Communicator ranks = mpi_communicator(MPI_COMM_WORLD);
    ranks.set_deadline(30);
    const int next = (ranks.rank() + 1) % ranks.size();
    const int previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
    const int mine = 70 + ranks.rank();
    int theirs = 0;
    MPI_Request host[2];
    MPI_Irecv(&theirs, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &host[0]);
    expect_sums(ranks, 3);
    if (ranks.size() > 1) {
        auto send = ranks.start_send(buffer_of(std::vector<int>{ranks.rank()}), next, 5);
        std::vector<int> got(1);
        ranks.receive(got, previous, 5);
        EXPECT_EQ(got[0], previous);
        send.wait();
    }
    MPI_Isend(&mine, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &host[1]);
    MPI_Waitall(2, host, MPI_STATUSES_IGNORE);
    EXPECT_EQ(theirs, 70 + previous);
    MPI_Errhandler after = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    EXPECT_EQ(after, before);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&after);
    meet();
}

TEST(mpi, what_cannot_be_a_communicator_is_refused) {
    EXPECT_THROW(mpi_communicator(MPI_COMM_NULL), reigen::ArgumentError);
    EXPECT_THROW(mpi_communicator(MPI_COMM_WORLD, {.block_bytes = 0}), reigen::ArgumentError);
    EXPECT_THROW(mpi_communicator(MPI_COMM_WORLD, {.block_bytes = Index(1) << 31}), reigen::ArgumentError);
    EXPECT_THROW(mpi_communicator(MPI_COMM_WORLD, {.chunk_bytes = 192}), reigen::ArgumentError);
    EXPECT_THROW(mpi_communicator(MPI_COMM_WORLD, {.chunk_bytes = 1000}), reigen::ArgumentError);
    char name[] = "host";
    char* arguments[] = {name, nullptr};
    EXPECT_NE(words_of<reigen::ArgumentError>([&] {
                  reigen::mpi_main(1, arguments, [](const Communicator&) {});
              }).find("MPI is initialised already; use mpi_communicator"),
              std::string::npos);
    meet();
}

TEST(mpi, a_communicator_may_go_before_its_messages_are_taken) {
    for (const Index count : {1, 1 << 20}) {
        const Communicator ranks = mpi_communicator(MPI_COMM_WORLD);
        if (ranks.size() > 1)
            static_cast<void>(ranks.start_send(reigen::Buffer<float>::zeros(count), (ranks.rank() + 1) % ranks.size()));
        meet();
    }
    meet();
}

TEST(mpi, many_communicators_come_and_go) {
    const Communicator ranks = mpi_communicator(MPI_COMM_WORLD);
    ranks.set_deadline(30);
    for (int i = 0; i < 300; ++i)
        expect_sums(ranks.split(i % 3 == 0 ? ranks.rank() : 0, 0), 2);
    meet();
}

} // namespace mpi_backend_test
