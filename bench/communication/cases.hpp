#pragma once

#include <reigen/comm/backend/operation.hpp>

#include <string>
#include <vector>

namespace communication {

using reigen::Call;
using reigen::Index;

/// One row: a collective, the bytes of the whole vector, gathered, or before it is scattered, and where the memory lies.
struct Case {
    Call call;
    Index bytes;
    bool in_buffers; // else in vectors, on the heap

    /// "all_reduce/float/65536", "all_reduce/float/65536/buffer".
    std::string name() const;

    /// Floats of the whole.
    Index whole() const { return bytes / Index(sizeof(float)); }

    /// What a rank has to read of what the others wrote, at least: one reads the others' parts of the whole, or their
    /// parts of its own.
    double bytes_read(int ranks) const;
};

/// All rows: sizes of which each of so many ranks has an equal part.
std::vector<Case> all_cases(int ranks);

/// One way to run a case on all ranks: ours or MPI's. Every run is the same work; the memory stays.
class Contender {
  public:
    Contender() = default;
    virtual ~Contender() = default;
    Contender(const Contender&) = delete;
    Contender& operator=(const Contender&) = delete;

    /// Writes what is read of this rank's memory, as the work before a collective does.
    virtual void refresh() = 0;

    /// Collective over the world.
    virtual void run() = 0;
};

} // namespace communication
