#pragma once

#include <reigen/comm/binding/bind.hpp>
#include <reigen/comm/mpi/comm.hpp>
#include <reigen/comm/mpi/node.hpp>

#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A share of its machine's cores for each of the ranks there, where their launcher left it to them who runs where
/// (`open_cores`). The first of them divides: containers may show others another machine. Collective.
inline void bind_ranks(MPI_Comm comm) {
    const MpiComm node(comm_of_node(comm, 0));
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(node.get(), &rank);
    MPI_Comm_size(node.get(), &size);
    std::vector<Cores> allowed;
    for (const cpu_set_t& set : all_say(node.get(), allowed_set()))
        allowed.push_back(cores_of(set));
    const Cores open = open_cores(allowed);
    if (open.empty() || size == 1)
        return; // all of them alike
    std::vector<cpu_set_t> sets;
    if (rank == 0)
        for (const Cores& share : shares(described(open), size))
            sets.push_back(set_of(share));
    cpu_set_t mine;
    mpi_check(MPI_Scatter(sets.data(), sizeof mine, MPI_BYTE, &mine, sizeof mine, MPI_BYTE, 0, node.get()),
              "MPI_Scatter");
    take_share({cores_of(mine), open});
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
