#pragma once

#include <reigen/comm/threads.hpp>
#include <reigen/core/random.hpp>
#include <reigen/layout/partition.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

// Cases drawn at random, each from its number alone. The environment says how many, and where they start:
//
//     REIGEN_RANDOM_CASES=5000 REIGEN_RANDOM_FIRST=1000 build/tests/random/test_random

namespace random_cases {

using namespace reigen;

/// The choices of one case. Every rank that makes one from the same number draws the same.
class Draw {
  public:
    Draw(Index number, std::uint64_t what) : random_(1, std::uint64_t(number), what) {}

    /// From low to high, both included; small ones as often as all the large ones together.
    Index size(Index low, Index high) { return coin() ? between(low, std::min(high, low + 3)) : between(low, high); }

    Index between(Index low, Index high) {
        return std::min(high, low + Index(random_.uniform(next_++) * double(high - low + 1)));
    }

    bool coin() { return between(0, 1) == 1; }

    template <class T>
    T one_of(const std::vector<T>& choices) {
        return choices[std::size_t(between(0, Index(choices.size()) - 1))];
    }

    /// n items over the ranks: balanced, in cuts anywhere, or dealt out one by one in any order.
    Partition partition(Index n, int ranks) {
        switch (between(0, 2)) {
        case 0:
            return Partition::balanced(n, ranks, between(1, 3));
        case 1:
            return Partition::of_sizes(cuts(n, ranks));
        default:
            return dealt(n, ranks);
        }
    }

    /// Sizes that sum to n; some are 0.
    std::vector<Index> cuts(Index n, int ranks) {
        std::vector<Index> ends(std::size_t(ranks), n);
        for (int rank = 0; rank + 1 < ranks; ++rank)
            ends[std::size_t(rank)] = between(0, n);
        std::ranges::sort(ends);
        std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
        return ends;
    }

  private:
    Partition dealt(Index n, int ranks) {
        std::vector<Index> items(std::size_t(n), Index(0));
        std::iota(items.begin(), items.end(), Index(0));
        for (Index i = n; i > 1; --i)
            std::swap(items[std::size_t(i - 1)], items[std::size_t(between(0, i - 1))]);
        std::vector<Runs> runs(static_cast<std::size_t>(ranks));
        for (const Index item : items)
            runs[std::size_t(between(0, ranks - 1))].append({item, 1, 1});
        return Partition::of_runs(n, std::move(runs));
    }

    RandomStream random_;
    Index next_ = 0;
};

inline Index from_environment(const char* name, Index otherwise) {
    const char* const value = std::getenv(name);
    return value != nullptr ? std::atol(value) : otherwise;
}

/// Calls test(number) for every case, and stops at the first that fails: its number is printed and makes it again.
template <class Test>
void for_each_case(const Test& test) {
    const Index first = from_environment("REIGEN_RANDOM_FIRST", 0);
    const Index count = from_environment("REIGEN_RANDOM_CASES", 200);
    for (Index number = first; number < first + count; ++number) {
        SCOPED_TRACE(concat("REIGEN_RANDOM_FIRST=", number));
        test(number);
        if (testing::Test::HasFailure())
            return;
    }
    testing::Test::RecordProperty("cases", int(count));
}

/// Runs the body on so many threads; what a rank throws is a failure of the case.
template <class Body>
void on_threads(int ranks, const Body& body) {
    try {
        run_threads(ranks, body, {.deadline = 60});
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
}

} // namespace random_cases
