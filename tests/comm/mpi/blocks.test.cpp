#include "comm/mpi/support.hpp"

namespace mpi_backend_test {

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

} // namespace mpi_backend_test
