#include "comm/mpi/support.hpp"

namespace mpi_backend_test {

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

} // namespace mpi_backend_test
