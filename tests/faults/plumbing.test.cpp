#include "comm/values.hpp"

#include <reigen/comm/mesh.hpp>

#include <gtest/gtest.h>

namespace plumbing_test {

using namespace reigen;

namespace {

/// Every collective of one group: what its members have, and nothing of anybody else's.
void expect_own_data_only(const Mesh& mesh, Axes axes, const std::vector<int>& members) {
    SCOPED_TRACE(to_string(axes));
    const Communicator& group = mesh[axes];
    const int self = mesh.world().rank();
    ASSERT_EQ(group.size(), int(members.size()));
    ASSERT_EQ(members[std::size_t(group.rank())], self);
    const auto of = [](int world_rank, Index i) { return 100 * world_rank + int(i); };
    const auto values = [&](int world_rank, Index n) {
        std::vector<int> result;
        for (Index i = 0; i < n; ++i)
            result.push_back(of(world_rank, i));
        return result;
    };
    const Index n = 3 * group.size();
    std::vector<int> sums(static_cast<std::size_t>(n)), all;
    for (const int member : members) {
        for (Index i = 0; i < n; ++i)
            sums[std::size_t(i)] += of(member, i);
        const auto part = values(member, 3);
        all.insert(all.end(), part.begin(), part.end());
    }

    auto reduced = values(self, n);
    group.all_reduce(reduced);
    EXPECT_EQ(reduced, sums);
    std::vector<int> gathered(static_cast<std::size_t>(n)), share(3);
    group.all_gather(values(self, 3), gathered);
    EXPECT_EQ(gathered, all);
    group.reduce_scatter(values(self, n), share);
    EXPECT_TRUE(std::equal(share.begin(), share.end(), sums.begin() + 3 * group.rank()));
    for (int root = 0; root < group.size(); ++root) { // counted in the group
        auto given = values(self, 3);
        group.broadcast(given, root);
        EXPECT_EQ(given, values(members[std::size_t(root)], 3)) << "root " << root;
    }
    const std::vector<Index> parts(members.size(), 3);
    group.all_to_all(values(self, n), parts, gathered, parts);
    for (std::size_t from = 0; from < members.size(); ++from)
        for (Index i = 0; i < 3; ++i)
            EXPECT_EQ(gathered[3 * from + std::size_t(i)], of(members[from], 3 * group.rank() + i));
    if (const int next = (group.rank() + 1) % group.size(); next != group.rank()) {
        const int previous = (group.rank() + group.size() - 1) % group.size();
        auto arriving = group.start_receive(Buffer<int>(3), previous);
        group.send(values(self, 3), next);
        EXPECT_EQ(vector_of(arriving.wait()), values(members[std::size_t(previous)], 3));
    }
}

} // namespace

// vllm#2528: data of another group, or a root that was counted in the world.
TEST(faults, vllm_2528_every_collective_of_a_group_stays_in_it) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        const int rank = mesh.world().rank();
        expect_own_data_only(mesh, tp, rank < 2 ? std::vector{0, 1} : std::vector{2, 3});
        expect_own_data_only(mesh, dp, rank % 2 == 0 ? std::vector{0, 2} : std::vector{1, 3});
        expect_own_data_only(mesh, dp | tp, {0, 1, 2, 3});
        expect_own_data_only(mesh, cp, {rank});
    });
    on_mesh({{Axes::cp, 3}, {Axes::tp, 1}}, [](const Mesh& mesh) { expect_own_data_only(mesh, cp | tp, {0, 1, 2}); });
}

// vllm#2528: calls of both groups in flight at once, started in an order that differs along the other axis.
TEST(faults, vllm_2528_groups_that_cross_do_not_meet_in_flight) {
    on_mesh({{Axes::dp, 2}, {Axes::tp, 2}}, [](const Mesh& mesh) {
        const int rank = mesh.world().rank();
        const auto start = [&](Axes axes) {
            return mesh[axes].start_all_reduce(buffer_of(std::vector<int>{1 << (4 * rank)}));
        };
        auto first = start(rank < 2 ? tp : dp);
        auto second = start(rank < 2 ? dp : tp);
        auto& over_tp = rank < 2 ? first : second;
        auto& over_dp = rank < 2 ? second : first;
        EXPECT_EQ(over_dp.wait()[0], rank % 2 == 0 ? 0x0101 : 0x1010);
        EXPECT_EQ(over_tp.wait()[0], rank < 2 ? 0x0011 : 0x1100);
    });
}

} // namespace plumbing_test
