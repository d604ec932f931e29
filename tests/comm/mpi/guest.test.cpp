#include "comm/mpi/support.hpp"

namespace mpi_backend_test {

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
