#pragma once

#include <reigen/comm/mpi/call.hpp>
#include <reigen/comm/shared_memory/choice.hpp>
#include <reigen/comm/shared_memory/collectives.hpp>
#include <reigen/comm/shared_memory/segment.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Whether this and all other ranks can say so. Collective.
inline bool all_ranks(MPI_Comm comm, bool mine) {
    int all = mine ? 1 : 0;
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    return all != 0;
}

/// Whether all ranks run on one machine, as MPI sees it. Collective.
inline bool all_on_one_node(MPI_Comm comm) {
    MPI_Comm node = MPI_COMM_NULL;
    mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    int here = 0;
    int size = 0;
    MPI_Comm_size(node, &here);
    MPI_Comm_size(comm, &size);
    MPI_Comm_free(&node);
    return all_ranks(comm, here == size);
}

/// The shared memory of a group of processes on one machine: a segment of each.
///
/// Not a window of MPI's: such a one is given back by all ranks together, while ranks may drop a communicator at any
/// time, and its size is bounded by /dev/shm.
class NodeMemory {
  public:
    /// Collective over `comm`, whose ranks run on one machine.
    NodeMemory(MPI_Comm comm, SlotShape shape) {
        int rank = 0;
        int size = 1;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        segments_.resize(std::size_t(size));
        Segment& mine = segments_[std::size_t(rank)];
        attempt([&] {
            mine = Segment::make(shape.bytes());
            Slots::prepare(mine.data(), shape);
        });
        std::vector<SegmentName> names(segments_.size());
        const SegmentName name = mine.name();
        mpi_check(MPI_Allgather(&name, sizeof name, MPI_BYTE, names.data(), sizeof name, MPI_BYTE, comm),
                  "MPI_Allgather");
        for (int peer = 0; peer < size; ++peer)
            if (peer != rank && why_not_.empty())
                attempt([&] { segments_[std::size_t(peer)] = Segment::attach(names[std::size_t(peer)], shape.bytes()); });
        if (!all_ranks(comm, why_not_.empty()) && why_not_.empty())
            why_not_ = "another rank has no shared memory";
        mine.close_file();
    }

    /// Why these ranks cannot share memory; empty where they do.
    const std::string& why_not() const { return why_not_; }

    Slots slots(int rank, SlotShape shape) const {
        std::vector<std::byte*> parts;
        for (const Segment& segment : segments_)
            parts.push_back(segment.data());
        return Slots(std::move(parts), rank, shape);
    }

  private:
    template <class Attempt>
    void attempt(Attempt attempt) {
        try {
            attempt();
        } catch (const CommunicationError& error) {
            why_not_ = error.what();
        }
    }

    std::vector<Segment> segments_;
    std::string why_not_;
};

/// The collectives through shared memory of the ranks of an MPI communicator, or the reason why there are none.
class NodeCollectives {
  public:
    /// Collective over `comm`.
    ///
    /// Throws  CommunicationError on every rank where there is to be shared memory `always`, and is none
    NodeCollectives(MPI_Comm comm, SharedMemory choice, SlotShape shape) {
        int rank = 0;
        int size = 1;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        if (size == 1 || choice == SharedMemory::never)
            why_not_ = size == 1 ? "there is one rank" : "shared memory is switched off";
        else if (!SlotCollectives::fits(size, shape))
            why_not_ = concat(size, " ranks are too many for chunks of ", shape.payload, " bytes");
        else if (!all_on_one_node(comm))
            why_not_ = "the ranks are on several nodes";
        else {
            memory_ = std::make_unique<NodeMemory>(comm, shape);
            why_not_ = memory_->why_not();
            if (why_not_.empty())
                collectives_.emplace(memory_->slots(rank, shape));
        }
        require<CommunicationError>(collectives_.has_value() || size == 1 || choice != SharedMemory::always,
                                    "shared memory is wanted always: ", why_not_);
    }

    /// Null where there is no shared memory.
    SlotCollectives* get() { return collectives_ ? &*collectives_ : nullptr; }

    const std::string& why_not() const { return why_not_; }

  private:
    std::unique_ptr<NodeMemory> memory_;
    std::optional<SlotCollectives> collectives_; // over that memory
    std::string why_not_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
