#pragma once

#include <reigen/comm/mpi/call.hpp>
#include <reigen/comm/shared_memory/choice.hpp>
#include <reigen/comm/shared_memory/collectives.hpp>
#include <reigen/comm/shared_memory/process_heap.hpp>
#include <reigen/comm/shared_memory/segment.hpp>

#include <algorithm>
#include <limits>
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

/// What every rank says, by rank. Collective.
template <class T>
std::vector<T> all_say(MPI_Comm comm, const T& mine) {
    int size = 1;
    MPI_Comm_size(comm, &size);
    std::vector<T> all(static_cast<std::size_t>(size));
    mpi_check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm), "MPI_Allgather");
    return all;
}

/// The wish that overrules those of the other ranks. Collective.
///
/// Throws  ArgumentError with these words on every rank where the environment of one says what cannot be understood
template <class Choice>
Choice common_wish(MPI_Comm comm, std::optional<Choice> mine, const char* words) {
    constexpr int unknown = std::numeric_limits<int>::max();
    int highest = mine ? int(*mine) : unknown;
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, &highest, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
    require(highest != unknown, words);
    return Choice(highest);
}

/// How the ranks of a communicator lie on machines.
struct NodeShape {
    int first = 0; // rank of this one's machine: that machine's number
    int rank = 0;  // among those of the machine
    int size = 1;
    bool one = true;         // whether all ranks run on one machine
    bool equal = true;       // whether all machines have as many
    bool by_node = true;     // whether ranks are numbered one machine after the other
    std::vector<int> firsts; // of each rank: the first rank of its machine
};

/// The ranks on the calling one's machine, as MPI sees it, or, where `at_most` is not 0, so many consecutive ones.
/// Collective.
inline MPI_Comm comm_of_node(MPI_Comm comm, int at_most) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm node = MPI_COMM_NULL;
    if (at_most > 0)
        mpi_check(MPI_Comm_split(comm, rank / at_most, rank, &node), "MPI_Comm_split");
    else
        mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    return node;
}

/// Collective over `comm`, of which `node` has those of one machine.
inline NodeShape shape_of_node(MPI_Comm comm, MPI_Comm node) {
    NodeShape shape;
    int size = 0;
    MPI_Comm_rank(comm, &shape.first);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(node, &shape.rank);
    MPI_Comm_size(node, &shape.size);
    mpi_check(MPI_Bcast(&shape.first, 1, MPI_INT, 0, node), "MPI_Bcast");
    const auto sizes = all_say(comm, shape.size);
    shape.firsts = all_say(comm, shape.first);
    shape.one = shape.size == size;
    shape.by_node = std::ranges::is_sorted(shape.firsts);
    shape.equal = std::ranges::all_of(sizes, [&](int other) { return other == sizes.front(); });
    return shape;
}

/// The slots of a group of processes on one machine: in a segment of each.
///
/// Not a window of MPI's: such a one is given back by all ranks together, while ranks may drop a communicator at any
/// time, and its size is bounded by /dev/shm.
class NodeSlots {
  public:
    /// Collective over `comm`, whose ranks run on one machine.
    NodeSlots(MPI_Comm comm, int rank, SlotShape shape) {
        Segment mine;
        attempt([&] {
            mine = Segment::make(shape.bytes());
            Slots::prepare(mine.data(), shape);
        });
        for (const SegmentName& name : all_say(comm, mine.name())) {
            const bool own = int(segments_.size()) == rank;
            Segment& segment = segments_.emplace_back();
            if (!own && why_not_.empty())
                attempt([&] { segment = Segment::attach(name, shape.bytes()); });
        }
        if (!all_ranks(comm, why_not_.empty()) && why_not_.empty())
            why_not_ = "another rank has no shared memory";
        mine.close_file();
        segments_[std::size_t(rank)] = std::move(mine);
    }

    /// Why these ranks have none; empty where they do.
    const std::string& why_not() const { return why_not_; }

    Slots get(int rank, SlotShape shape) const {
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

/// Whether the system lets every rank read of every other one: each has tried. Collective.
inline bool system_copies(MPI_Comm comm, const std::vector<pid_t>& processes) {
    const std::uint64_t mine = drawn_number();
    const auto numbers = all_say(comm, mine);
    const auto addresses = all_say(comm, std::uint64_t(reinterpret_cast<std::uintptr_t>(&mine)));
    const PeerMemory memory(nullptr, {}, processes);
    bool all = true;
    for (int peer = 0; peer < int(processes.size()) && all; ++peer)
        try {
            std::uint64_t theirs = 0;
            memory.read(peer, {addresses[std::size_t(peer)], 0}, 0, reinterpret_cast<std::byte*>(&theirs),
                        sizeof theirs);
            all = theirs == numbers[std::size_t(peer)];
        } catch (const CommunicationError&) {
            all = false;
        }
    return all_ranks(comm, all); // and nobody's number is gone before all have read it
}

/// What the ranks of one machine can read of each other's memory. Collective.
inline PeerMemory node_memory(MPI_Comm comm, int rank) {
    int size = 1;
    MPI_Comm_size(comm, &size);
    const ProcessHeap& own = ProcessHeap::of_this_process();
    std::vector<pid_t> processes;
    std::vector<std::shared_ptr<const Segment>> heaps;
    bool all = own.heap() != nullptr;
    for (const ProcessHeap::Name& name : all_say(comm, own.name())) {
        const bool is_own = int(heaps.size()) == rank;
        processes.push_back(name.segment.process);
        heaps.push_back(is_own ? nullptr : ProcessHeap::attach(name));
        all = all && (is_own || heaps.back() != nullptr);
    }
    const bool in_place = all_ranks(comm, all);
    if (!system_copies(comm, processes))
        processes.clear();
    return PeerMemory(in_place ? own.heap() : nullptr, std::move(heaps), std::move(processes));
}

/// The collectives through shared memory of the ranks of an MPI communicator, or the reason why there are none.
class NodeCollectives {
  public:
    /// Collective over `comm`.
    ///
    /// Throws  CommunicationError on every rank where there is to be shared memory `always`, and is none
    NodeCollectives(MPI_Comm comm, bool one_node, SharedMemory choice, SlotShape shape) {
        int rank = 0;
        int size = 1;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        if (size == 1 || choice == SharedMemory::never)
            why_not_ = size == 1 ? "there is one rank" : "shared memory is switched off";
        else if (!one_node)
            why_not_ = "the ranks are on several nodes";
        else if (!SlotCollectives::fits(size, shape))
            why_not_ = concat(size, " ranks are too many for chunks of ", shape.payload, " bytes");
        else {
            slots_ = std::make_unique<NodeSlots>(comm, rank, shape);
            why_not_ = slots_->why_not();
            if (why_not_.empty())
                collectives_.emplace(slots_->get(rank, shape), std::make_unique<PeerWatch>(), node_memory(comm, rank));
        }
        require<CommunicationError>(collectives_.has_value() || size == 1 || choice != SharedMemory::always,
                                    "shared memory is wanted always: ", why_not_);
    }

    /// Null where there is no shared memory.
    SlotCollectives* get() { return collectives_ ? &*collectives_ : nullptr; }

    const std::string& why_not() const { return why_not_; }

    /// ", long Buffers read in place".
    std::string how() const { return collectives_->how(); }

  private:
    std::unique_ptr<NodeSlots> slots_;
    std::optional<SlotCollectives> collectives_; // over them
    std::string why_not_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
