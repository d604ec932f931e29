#pragma once

#include <reigen/comm/by_node.hpp>
#include <reigen/comm/mpi/comm.hpp>
#include <reigen/comm/mpi/node.hpp>
#include <reigen/comm/wish.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// How `mpi_main` numbers the ranks of its world. In the order in which one rank's wish overrules those of the others.
enum class RankOrder : std::uint8_t {
    by_node, // one machine after the other
    launched // as MPI does
};

inline const char* to_string(RankOrder order) {
    constexpr const char* names[] = {"by_node", "launched"};
    return names[int(order)];
}

namespace detail {

/// What REIGEN_RANK_ORDER in the environment of this process says; nothing where it has another value than the names of
/// the orders.
inline std::optional<RankOrder> rank_order_wish() {
    return wish_of_environment("REIGEN_RANK_ORDER", {RankOrder::by_node, RankOrder::launched}, RankOrder::by_node);
}

/// By whose numbers messages to people call ranks: MPI's world, or that of `mpi_main` where it numbers otherwise.
inline MPI_Comm& numbered_world() {
    static MPI_Comm world = MPI_COMM_WORLD;
    return world;
}

/// While it lives, the ranks of MPI's world are numbered one machine after the other, if they were not anyway and no
/// rank's environment has REIGEN_RANK_ORDER=launched.
class NumberedWorld {
  public:
    /// Collective over MPI's world.
    ///
    /// Throws  ArgumentError on every rank where the environment of one says what cannot be understood
    NumberedWorld() {
        const auto order =
            common_wish(MPI_COMM_WORLD, rank_order_wish(), "REIGEN_RANK_ORDER is neither by_node nor launched");
        if (order == RankOrder::launched)
            return;
        const MpiComm node(comm_of_node(MPI_COMM_WORLD, 0));
        const auto ranks = ranks_by_node(all_say(MPI_COMM_WORLD, shape_of_node(MPI_COMM_WORLD, node.get()).first));
        if (std::ranges::is_sorted(ranks))
            return;
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        const auto position = int(std::ranges::find(ranks, rank) - ranks.begin());
        MPI_Comm ordered = MPI_COMM_NULL;
        mpi_check(MPI_Comm_split(MPI_COMM_WORLD, 0, position, &ordered), "MPI_Comm_split");
        comm_.emplace(ordered);
        numbered_world() = ordered;
    }

    NumberedWorld(const NumberedWorld&) = delete;
    NumberedWorld& operator=(const NumberedWorld&) = delete;

    ~NumberedWorld() { numbered_world() = MPI_COMM_WORLD; }

  private:
    std::optional<MpiComm> comm_;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
