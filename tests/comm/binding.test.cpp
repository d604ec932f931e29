#include <reigen/comm/binding/choice.hpp>
#include <reigen/comm/binding/shares.hpp>
#include <reigen/comm/binding/system.hpp>

#include "support/words.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <vector>

namespace binding_test {

using reigen::detail::Core;
using reigen::detail::Cores;
using reigen::detail::open_cores;
using reigen::detail::shares;

namespace {

using Shares = std::vector<Cores>;

/// Cores numbered one memory node after the other, and all second hardware threads behind all first ones.
std::vector<Core> machine(const std::vector<int>& cores_of_nodes, int threads = 1) {
    const int cores = std::accumulate(cores_of_nodes.begin(), cores_of_nodes.end(), 0);
    std::vector<Core> result;
    for (int thread = 0; thread < threads; ++thread)
        for (int node = 0, core = 0; node < int(cores_of_nodes.size()); ++node)
            for (int k = 0; k < cores_of_nodes[std::size_t(node)]; ++k, ++core)
                result.push_back({core + thread * cores, core, node});
    return result;
}

std::vector<Core> only(std::vector<Core> cores, const Cores& allowed) {
    std::erase_if(cores, [&](const Core& core) { return !std::ranges::count(allowed, core.number); });
    return cores;
}

const Core& core_of(const std::vector<Core>& cores, int number) {
    return *std::ranges::find(cores, number, &Core::number);
}

std::size_t nodes_under(const std::vector<Core>& cores, const Cores& share) {
    std::set<int> nodes;
    for (const int number : share)
        nodes.insert(core_of(cores, number).memory_node);
    return nodes.size();
}

} // namespace

TEST(binding, cores_are_open_where_all_ranks_have_the_same_and_enough_of_them) {
    EXPECT_EQ(open_cores(Shares{{0, 1, 5}, {0, 1, 5}}), (Cores{0, 1, 5}));
    EXPECT_EQ(open_cores(Shares{{0, 1}, {0, 1}}), (Cores{0, 1}));
    EXPECT_EQ(open_cores(Shares{{0, 1}, {0, 1}, {0, 1}}), Cores()); // ranks outnumber cores
    EXPECT_EQ(open_cores(Shares{{0, 1}, {2, 3}}), Cores());         // bound by their launcher
    EXPECT_EQ(open_cores(Shares{{0, 1, 2}, {0, 1}}), Cores());
    EXPECT_EQ(open_cores(Shares{{}, {}}), Cores()); // the system does not tell
    EXPECT_EQ(open_cores(Shares{{4}}), (Cores{4}));
}

TEST(binding, a_rank_takes_a_share_of_all_cores_not_one_of_them) {
    EXPECT_EQ(shares(machine({8}), 1), (Shares{{0, 1, 2, 3, 4, 5, 6, 7}}));
    EXPECT_EQ(shares(machine({8}), 2), (Shares{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(shares(machine({8}), 3), (Shares{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
    EXPECT_EQ(shares(machine({3}), 3), (Shares{{0}, {1}, {2}}));
}

TEST(binding, hardware_threads_of_a_core_stay_together_while_there_are_cores_enough) {
    EXPECT_EQ(shares(machine({4}, 2), 2), (Shares{{0, 1, 4, 5}, {2, 3, 6, 7}}));
    EXPECT_EQ(shares(machine({4}, 2), 3), (Shares{{0, 1, 4, 5}, {2, 6}, {3, 7}}));
    EXPECT_EQ(shares(machine({4}, 2), 4), (Shares{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
    EXPECT_EQ(shares(machine({2}, 2), 3), (Shares{{0, 2}, {1}, {3}})); // core 0, and the threads of core 1
    EXPECT_EQ(shares(machine({2}, 2), 4), (Shares{{0}, {2}, {1}, {3}}));
    const std::vector<Core> neighbours = {{0, 0, 0}, {1, 0, 0}, {2, 2, 0}, {3, 2, 0}}; // threads numbered in turn
    EXPECT_EQ(shares(neighbours, 2), (Shares{{0, 1}, {2, 3}}));
}

TEST(binding, shares_stay_on_one_memory_node_unless_one_were_much_smaller_for_it) {
    EXPECT_EQ(shares(machine({4, 4}), 2), (Shares{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(shares(machine({4, 4}), 3), (Shares{{0, 1}, {2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(shares(machine({2, 6}), 4), (Shares{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
    EXPECT_EQ(shares(machine({1, 7}), 2), (Shares{{0, 1, 2, 3}, {4, 5, 6, 7}})); // 1 of 4 would be too few
    EXPECT_EQ(shares(machine({2, 2}), 1), (Shares{{0, 1, 2, 3}}));
    EXPECT_EQ(shares(machine({1, 1, 1, 1}), 2), (Shares{{0, 1}, {2, 3}})); // whole nodes
    EXPECT_EQ(shares(machine({2, 2}, 2), 2), (Shares{{0, 1, 4, 5}, {2, 3, 6, 7}}));
    const std::vector<Core> untold = {{0, 0, -1}, {1, 1, -1}, {2, 2, -1}, {3, 3, -1}};
    EXPECT_EQ(shares(untold, 2), (Shares{{0, 1}, {2, 3}}));
    const std::vector<Core> dealt = {{0, 0, 0}, {1, 1, 1}, {2, 2, 0}, {3, 3, 1}}; // numbered in turn over the nodes
    EXPECT_EQ(shares(dealt, 2), (Shares{{0, 2}, {1, 3}}));
}

TEST(binding, of_a_limited_set_only_what_is_allowed_is_shared) {
    EXPECT_EQ(shares(only(machine({4, 4}), {2, 3, 4, 5}), 2), (Shares{{2, 3}, {4, 5}}));
    EXPECT_EQ(shares(only(machine({4, 4}), {3, 5, 6}), 3), (Shares{{3}, {5}, {6}}));
    EXPECT_EQ(shares(only(machine({4}, 2), {1, 2, 6}), 2), (Shares{{1}, {2, 6}})); // one thread of core 1 alone
}

TEST(binding, whatever_the_machine_shares_are_disjoint_and_leave_nothing_out) {
    for (const auto& nodes : std::vector<std::vector<int>>{{1}, {5}, {4, 4}, {7, 9}, {1, 12}, {3, 3, 3, 2}})
        for (const int threads : {1, 2}) {
            const auto cores = machine(nodes, threads);
            for (int ranks = 1; ranks <= int(cores.size()); ++ranks) {
                const auto result = shares(cores, ranks);
                ASSERT_EQ(result.size(), std::size_t(ranks));
                Cores all;
                std::size_t smallest = cores.size();
                for (const Cores& share : result) {
                    all.insert(all.end(), share.begin(), share.end());
                    smallest = std::min(smallest, share.size());
                    EXPECT_TRUE(std::ranges::is_sorted(share));
                    if (nodes.size() == 2 && nodes[0] == nodes[1] && ranks > 1) {
                        EXPECT_EQ(nodes_under(cores, share), 1U) << ranks;
                    }
                }
                std::ranges::sort(all);
                Cores want(cores.size());
                std::iota(want.begin(), want.end(), 0);
                EXPECT_EQ(all, want) << ranks;
                const std::size_t units =
                    int(cores.size()) / threads >= ranks ? cores.size() / std::size_t(threads) : cores.size();
                EXPECT_GE(4 * smallest * units, 3 * (units / std::size_t(ranks)) * cores.size()) << ranks;
            }
        }
}

TEST(binding, fewer_cores_than_ranks_are_no_shares) {
    EXPECT_THROW(shares(machine({2}), 3), reigen::ArgumentError);
    EXPECT_THROW(shares(machine({2}), 0), reigen::ArgumentError);
    EXPECT_THROW(shares({}, 1), reigen::ArgumentError);
}

TEST(binding, the_environment_overrules_by_the_names_of_the_choices) {
    using reigen::Binding;
    using reigen::detail::binding_wish;
    setenv("REIGEN_BINDING", "", 1);
    EXPECT_EQ(binding_wish(Binding::automatic), Binding::automatic);
    EXPECT_EQ(binding_wish(Binding::never), Binding::never);
    setenv("REIGEN_BINDING", "automatic", 1);
    EXPECT_EQ(binding_wish(Binding::never), Binding::automatic);
    setenv("REIGEN_BINDING", "never", 1);
    EXPECT_EQ(binding_wish(Binding::automatic), Binding::never);
    setenv("REIGEN_BINDING", "Never", 1);
    EXPECT_EQ(binding_wish(Binding::automatic), std::nullopt);
    unsetenv("REIGEN_BINDING");
}

TEST(binding, the_system_tells_of_touched_pages_alone_where_they_are) {
    const auto page = std::size_t(sysconf(_SC_PAGESIZE));
    constexpr std::size_t pages = 8;
    void* const memory = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const bytes = static_cast<std::byte*>(memory);
    madvise(memory, pages * page, MADV_NOHUGEPAGE);
    const auto found = [&](std::size_t looks) {
        return reigen::detail::memory_nodes_under({bytes, pages * page}, looks).size();
    };
    EXPECT_EQ(found(pages), 0U);
    bytes[0] = std::byte(1);
    const std::size_t told = found(pages); // none where the system does not tell
    EXPECT_LE(told, 1U);
    bytes[4 * page] = std::byte(1);
    EXPECT_EQ(found(pages), 2 * told);
    EXPECT_EQ(found(2), 2 * told); // pages 0 and 4
    EXPECT_EQ(found(1), told);
    EXPECT_EQ(reigen::detail::memory_nodes_under({}, 4).size(), 0U);
    munmap(memory, pages * page);
}

} // namespace binding_test
