#include "attention/ring_cases.hpp"

#include <reigen/attention/rotate.hpp>

#include <map>

namespace rotate_test {

using namespace ring_cases;

namespace {

// Blocks whose every element tells whose it is and where.
int element(int owner, Index i) {
    return 1000 * owner + int(i);
}

std::vector<Index> sizes_of(int ranks) {
    std::vector<Index> sizes;
    for (int rank = 0; rank < ranks; ++rank)
        sizes.push_back(rank == 2 ? 0 : 3 + rank % 2);
    return sizes;
}

/// Rotates, checks every visit and gives the owners in the order of their visits.
std::vector<int> visits(const Communicator& ring, const RingRoute& route, Turn turn) {
    const std::vector<Index> sizes = sizes_of(ring.size());
    std::vector<int> owners;
    const auto pack = [&](std::span<int> block) {
        for (std::size_t i = 0; i < block.size(); ++i)
            block[i] = element(ring.rank(), Index(i));
    };
    rotate<int>(ring, route, turn, sizes, pack, [&](const Visit<int>& visit) {
        owners.push_back(visit.owner);
        EXPECT_EQ(visit.owner, route.block_at(turn, ring.rank(), visit.step));
        const bool stays = visit.step == 0 && route.steps(turn, visit.owner) == 0;
        EXPECT_EQ(visit.data == nullptr, stays || sizes[std::size_t(visit.owner)] == 0);
        for (Index i = 0; visit.data != nullptr && i < sizes[std::size_t(visit.owner)]; ++i)
            EXPECT_EQ(visit.data[i], element(visit.owner, i));
    });
    return owners;
}

} // namespace

TEST(rotate, brings_every_block_to_every_rank) {
    on_every_world([](const Communicator& ring) {
        const int ranks = ring.size();
        const RingRoute route(ranks, [](int, int) { return true; });
        for (int round = 0; round < 20; ++round) {
            const std::vector<int> owners = visits(ring, route, Turn::onward);
            ASSERT_EQ(int(owners.size()), ranks);
            for (int step = 0; step < ranks; ++step)
                EXPECT_EQ(owners[std::size_t(step)], (ring.rank() - step + ranks) % ranks);
        }
    });
}

TEST(rotate, carries_each_block_as_far_as_its_route) {
    on_every_world([](const Communicator& ring) {
        const int ranks = ring.size();
        const RingRoute route(ranks, [&](int rank, int block) { return rank == block + 1 || rank == block - 1; });
        const Traffic before = ring.traffic();
        Index bytes = 0;
        for (const Turn turn : both_turns)
            for (const int owner : visits(ring, route, turn))
                if (route.rank_at(turn, owner, route.steps(turn, owner)) != ring.rank())
                    bytes += sizes_of(ranks)[std::size_t(owner)] * Index(sizeof(int));
        EXPECT_EQ((ring.traffic() - before).bytes, bytes);
    });
}

TEST(rotate, holds_two_blocks_at_most) {
    on_every_world([](const Communicator& ring) {
        constexpr Index size = 1000;
        const std::vector<Index> sizes(std::size_t(ring.size()), size);
        const RingRoute route(ring.size(), [](int, int) { return true; });
        const auto& account = *memory_account();
        const MemoryScope scope(MemoryUse::keys_values);
        memory_account()->reset_peaks();
        const Index held = account.of(MemoryUse::keys_values).current;
        const Index allocations = account.allocations();
        rotate<int>(
            ring, route, Turn::onward, sizes, [](std::span<int> block) { std::fill(block.begin(), block.end(), 1); },
            [](const Visit<int>&) {});
        const Index blocks = ring.size() == 1 ? 0 : 2;
        EXPECT_EQ(account.of(MemoryUse::keys_values).peak - held, blocks * size * Index(sizeof(int)));
        EXPECT_EQ(account.allocations() - allocations >= blocks, true);
    });
}

} // namespace rotate_test
