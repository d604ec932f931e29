#pragma once

#include <reigen/comm/backend/wrapper.hpp>
#include <reigen/comm/communicator.hpp>

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

/// Machines of ranks, by the number of each rank: the same for all of one machine.
using NodeOfRank = std::function<int(int rank)>;

/// Ranks that take themselves for such of other machines than they are.
class InventedNodes final : public reigen::Wrapper {
  public:
    InventedNodes(std::shared_ptr<reigen::Backend> inner, NodeOfRank node_of)
        : Wrapper(std::move(inner)), node_of_(std::move(node_of)) {}

    int node() const override {
        for (int first = 0;; ++first)
            if (node_of_(first) == node_of_(rank()))
                return first;
    }

    std::shared_ptr<reigen::Backend> split(int color, std::span<const int> members) override {
        const std::vector<int> before(members.begin(), members.end());
        return std::make_shared<InventedNodes>(
            inner().split(color, members), [before, of = node_of_](int rank) { return of(before[std::size_t(rank)]); });
    }

  private:
    NodeOfRank node_of_;
};

inline reigen::Communicator on_invented_nodes(const reigen::Communicator& ranks, NodeOfRank node_of) {
    reigen::Communicator result(
        std::make_shared<InventedNodes>(reigen::detail::same_group(*ranks.backend()), std::move(node_of)));
    result.set_deadline(ranks.deadline());
    return result;
}
