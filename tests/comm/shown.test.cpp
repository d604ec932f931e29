#include <reigen/comm/faulty.hpp>
#include <reigen/comm/shown.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace shown_test {

using reigen::Buffer;
using reigen::Shown;

namespace {

/// Long enough to lie where others can read, but for rank 1's, which is empty.
Index block_size(int rank) {
    return rank == 1 ? 0 : 10000 + rank;
}

Buffer<double> block(int rank) {
    return buffer_of(wild_values<double>(rank, block_size(rank)));
}

} // namespace

TEST(shown, every_rank_reads_what_the_others_show) {
    on_every_world([](const Communicator& world) {
        const auto before = world.traffic();
        for (int again = 0; again < 3; ++again) {
            Shown<double> blocks(world, block(world.rank()));
            if (!blocks.readable())
                continue;
            for (int rank = 0; rank < world.size(); ++rank) {
                const double* const first = blocks.of(rank);
                EXPECT_TRUE(same_bits(std::vector<double>(first, first + block_size(rank)),
                                      wild_values<double>(rank, block_size(rank))));
            }
            blocks.close();
            EXPECT_FALSE(blocks.readable());
        }
        EXPECT_EQ(world.traffic(), before);
    });
}

TEST(shown, nothing_is_readable_over_messages_alone) {
    on_every_world([](const Communicator& world) {
        Shown<double> blocks(faulty(world, {}), block(world.rank()));
        EXPECT_FALSE(blocks.readable());
    });
}

TEST(shown, a_block_stays_where_its_rank_does_not_come_to_the_end) {
    on_world(2, [](const Communicator& world) {
        const Communicator ranks = unchecked(world);
        const double* theirs = nullptr;
        try {
            Shown<double> blocks(ranks, block(2));
            if (!blocks.readable())
                return;
            theirs = blocks.of(1 - world.rank());
            throw std::runtime_error("before close");
        } catch (const std::runtime_error&) {
        }
        world.barrier();
        EXPECT_EQ(std::vector<double>(theirs, theirs + block_size(2)), wild_values<double>(2, block_size(2)));
        world.barrier();
    });
}

} // namespace shown_test
