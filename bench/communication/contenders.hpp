#pragma once

#include "communication/cases.hpp"

#include <reigen/comm/communicator.hpp>

#include <memory>

namespace communication {

/// Collective over the world, as all of these.
std::unique_ptr<Contender> make_ours(const Case& which, const reigen::Communicator& world);

/// MPI's own collective on the same sizes.
std::unique_ptr<Contender> make_mpi(const Case& which, int ranks);

/// Every rank copies, from memory that the next rank has just written, what the case has it read at least.
class Neighbour {
  public:
    Neighbour(const Case& which, const reigen::Communicator& world);
    ~Neighbour();

    /// Seconds of one such copy, after the writing.
    double seconds();

  private:
    struct Memory;
    std::unique_ptr<Memory> memory_;
};

} // namespace communication
