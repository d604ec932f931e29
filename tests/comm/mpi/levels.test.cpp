#include "comm/mpi/support.hpp"

#include <chrono>
#include <thread>

namespace mpi_backend_test {

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

} // namespace mpi_backend_test
