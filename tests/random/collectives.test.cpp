#include "comm/values.hpp"
#include "random/draw.hpp"

namespace collectives_test {

using namespace random_cases;

namespace {

/// As the rank order of the sum has it, which small integers in double do not show; bits are tested elsewhere.
std::vector<double> summed(int ranks, Index n) {
    std::vector<double> sum(std::size_t(n), 0.0);
    for (int rank = 0; rank < ranks; ++rank)
        for (Index i = 0; i < n; ++i)
            sum[std::size_t(i)] += small_value(rank, i);
    return sum;
}

std::vector<double> slice(const std::vector<double>& all, Index first, Index count) {
    return {all.begin() + first, all.begin() + first + count};
}

/// A few collectives of drawn kinds in flight at once, waited for in another order.
void check(Draw draw) {
    const int ranks = int(draw.between(1, 6));
    on_threads(ranks, [&](const Communicator& world) {
        Draw mine = draw;
        const int rank = world.rank();
        std::vector<std::pair<Pending<double>, std::vector<double>>> flights;
        for (Index flight = mine.between(1, 4); flight > 0; --flight) {
            const Index n = mine.size(0, 200);
            const std::vector<Index> parts = mine.cuts(n, ranks);
            const auto starts = reigen::detail::starts_of(parts);
            const Index first = starts[std::size_t(rank)], count = parts[std::size_t(rank)];
            const int root = int(mine.between(0, ranks - 1));
            switch (mine.between(0, 4)) {
            case 0:
                flights.emplace_back(world.start_all_reduce(buffer_of(small_values<double>(rank, n))),
                                     summed(ranks, n));
                break;
            case 1:
                flights.emplace_back(world.start_reduce_scatter(buffer_of(small_values<double>(rank, n)),
                                                                Buffer<double>(count), Reduction::sum, parts),
                                     slice(summed(ranks, n), first, count));
                break;
            case 2:
                flights.emplace_back(
                    world.start_all_gather(buffer_of(slice(summed(1, n), first, count)), Buffer<double>(n), parts),
                    summed(1, n));
                break;
            case 3:
                flights.emplace_back(world.start_broadcast(buffer_of(small_values<double>(rank, n)), root),
                                     small_values<double>(root, n));
                break;
            default: {
                const std::vector<Index> takes(std::size_t(ranks), count);
                std::vector<double> want;
                for (int from = 0; from < ranks; ++from) {
                    const auto theirs = slice(small_values<double>(from, n), first, count);
                    want.insert(want.end(), theirs.begin(), theirs.end());
                }
                flights.emplace_back(world.start_all_to_all(buffer_of(small_values<double>(rank, n)), parts,
                                                            Buffer<double>(count * ranks), takes),
                                     std::move(want));
            }
            }
        }
        if (mine.coin())
            std::ranges::reverse(flights);
        for (auto& [pending, want] : flights) {
            const Buffer<double> got = pending.wait();
            EXPECT_EQ(std::vector<double>(got.begin(), got.end()), want);
        }
    });
}

} // namespace

TEST(random, collectives_in_flight_together_equal_plain_loops) {
    for_each_case([](Index number) { check(Draw(number, 4)); });
}

} // namespace collectives_test
