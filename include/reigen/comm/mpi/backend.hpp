#pragma once

#include <reigen/comm/binding/choice.hpp>
#include <reigen/comm/checked.hpp>
#include <reigen/comm/collectives/cost.hpp>
#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/launcher.hpp>
#include <reigen/comm/mpi/bind.hpp>
#include <reigen/comm/mpi/call.hpp>
#include <reigen/comm/mpi/levels.hpp>
#include <reigen/comm/mpi/message.hpp>
#include <reigen/comm/mpi/node.hpp>
#include <reigen/comm/mpi/order.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

struct MpiOptions {
    Index block_bytes = Index(1) << 30; // longest message given to MPI at once; at most INT_MAX, and equal on all ranks
    SharedMemory shared_memory = SharedMemory::automatic; // REIGEN_SHARED_MEMORY in the environment overrules it
    Binding binding = Binding::never; // of the calling threads to cores; REIGEN_BINDING in the environment overrules it
    Index chunk_bytes = Index(128) << 10; // that a rank puts into shared memory at once; a multiple of 64, at least 256
    int node_ranks = 0; // so many consecutive ranks count as a node, to try what many do on one; 0: as MPI sees them
};

/// Ranks as processes under MPI. Collectives go through memory that the ranks share where all are on one machine. On
/// several machines with as many ranks each, all-reduces, broadcasts and, where ranks are numbered one machine after the
/// other, all-gathers go through the memory of each and messages between them. The rest, and all elsewhere, are the
/// schedules over MPI's messages.
class MpiBackend final : public Backend {
  public:
    /// Takes `comm` over. Collective.
    MpiBackend(MPI_Comm comm, MpiOptions options) : comm_(comm), options_(options) {
        detail::mpi_check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
        detail::mpi_check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
        detail::MpiComm node(detail::comm_of_node(comm, options.node_ranks));
        const detail::NodeShape shape = detail::shape_of_node(comm, node.get());
        first_of_node_ = shape.first;
        node_ = std::make_unique<detail::NodeCollectives>(comm, shape.one, options.shared_memory,
                                                          detail::SlotShape{.payload = options.chunk_bytes});
        if (options.shared_memory != SharedMemory::never && !shape.one && shape.equal && shape.size > 1)
            make_levels(node.get(), shape);
    }

    int rank() const override { return rank_; }
    int node() const override { return first_of_node_; }
    int size() const override { return size_; }

    std::string description() const override {
        return concat("processes under ", mpi_version(), "; collectives ",
                      shares_memory()
                          ? "through shared memory" + node_->how()
                          : concat("by messages, as ", node_->why_not(),
                                   levels_ ? concat("; ", levels_->calls(), " in each through shared memory") : ""));
    }

    /// Whether its collectives go through memory that the ranks share.
    bool shares_memory() const { return node_->why_not().empty(); }

    int origin(int rank) const override {
        MPI_Group group = MPI_GROUP_NULL;
        MPI_Group world = MPI_GROUP_NULL;
        MPI_Comm_group(comm_.get(), &group);
        MPI_Comm_group(detail::numbered_world(), &world);
        int number = rank;
        MPI_Group_translate_ranks(group, 1, &rank, world, &number);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
        return number;
    }

    bool reads_in_place() const override { return peer_memory().in_place(); }
    SharedAddress address_of(const std::byte* memory, Index bytes) const override {
        return peer_memory().address_of(memory, bytes);
    }
    const std::byte* in_place(int rank, SharedAddress memory) const override { return peer_memory().at(rank, memory); }

    std::unique_ptr<Message> start_message(const Operation& operation) override {
        if (operation.call == Call::send)
            return std::make_unique<detail::MpiSend>(comm_, options_.block_bytes, operation);
        return std::make_unique<detail::MpiReceive>(comm_, options_.block_bytes, operation, receives_);
    }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        detail::SlotCollectives* const shared = node_->get();
        if (levels_ && detail::has_two_levels(*levels_, operation))
            return detail::start_on_two_levels(*levels_, operation);
        if (shared == nullptr || operation.call == Call::agree)
            return start_by_messages(*this, operation);
        account(operation, traffic_of(operation, rank_, size_));
        return shared->start(operation);
    }

    Traffic traffic() const override { return Backend::traffic() + (levels_ ? levels_->traffic() : Traffic()); }

    std::shared_ptr<Backend> split(int color, std::span<const int> members) override {
        const int position = int(std::ranges::find(members, rank_) - members.begin());
        MPI_Comm part = MPI_COMM_NULL;
        detail::mpi_check(MPI_Comm_split(comm_.get(), color, position, &part), "MPI_Comm_split");
        return std::make_shared<MpiBackend>(part, options_);
    }

  private:
    const detail::PeerMemory& peer_memory() const {
        static const detail::PeerMemory none;
        return node_->get() != nullptr ? node_->get()->peer_memory() : none;
    }

    /// Collective.
    void make_levels(MPI_Comm node, const detail::NodeShape& shape) {
        MPI_Comm in_node = MPI_COMM_NULL;
        MPI_Comm across = MPI_COMM_NULL;
        detail::mpi_check(MPI_Comm_dup(node, &in_node), "MPI_Comm_dup");
        detail::mpi_check(MPI_Comm_split(comm_.get(), shape.rank, shape.first, &across), "MPI_Comm_split");
        MpiOptions inside = options_;
        inside.node_ranks = 0;
        MpiOptions between = options_;
        between.shared_memory = SharedMemory::never;
        levels_ =
            detail::Levels{std::make_shared<MpiBackend>(in_node, inside), std::make_shared<MpiBackend>(across, between),
                           detail::ranks_by_node(shape.firsts), shape.by_node};
    }

    detail::MpiComm comm_;
    MpiOptions options_;
    std::unique_ptr<detail::NodeCollectives> node_;
    std::optional<detail::Levels> levels_; // where the ranks are on several nodes
    int rank_ = 0;
    int size_ = 1;
    int first_of_node_ = 0;
    detail::Lines receives_;
};

namespace detail {

/// `check_launcher` for this MPI's world.
inline void check_world() {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check_launcher(size);
}

/// `environment_wants_checks` of all ranks together: mpirun does not pass the environment on to other hosts.
inline std::optional<bool> some_rank_wants_checks(MPI_Comm comm) {
    const std::optional<bool> mine = environment_wants_checks();
    int highest = mine ? int(*mine) : 2;
    mpi_check(MPI_Allreduce(MPI_IN_PLACE, &highest, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
    return highest == 2 ? std::nullopt : std::optional(highest == 1);
}

/// With what the environment of any rank says instead. Collective.
///
/// Throws  ArgumentError on every rank where that cannot be understood
inline MpiOptions as_environment_says(MPI_Comm comm, MpiOptions options) {
    options.shared_memory = common_wish(comm, shared_memory_wish(options.shared_memory),
                                        "REIGEN_SHARED_MEMORY is neither automatic nor always nor never");
    options.binding = common_wish(comm, binding_wish(options.binding), "REIGEN_BINDING is neither automatic nor never");
    return options;
}

} // namespace detail

/// The ranks of an MPI communicator, for a program that owns MPI: any communicator, world or not.
///
/// It is duplicated, so no message of ours meets one of the host's, and errors come back as exceptions on the duplicate
/// alone; the host's communicator and its error handler stay as they are. Collective over `comm`. `checked` where the
/// environment of any rank has REIGEN_CHECKED=1.
///
/// With `Binding::automatic` the ranks of a machine divide its cores, if their launcher left these to all of them:
/// disjoint shares of neighbours, as equal as can be, no core's hardware threads apart and none from two memory nodes
/// where that can be. The calling thread keeps to its share, and so do threads that it starts later and memory
/// that these touch first; those that run already stay where they are. Where sets differ, or ranks outnumber cores,
/// nothing is changed. `describe` shows it. Meant for a `comm` with all of the job's ranks on the machine.
///
/// MPI must be initialised, with MPI_THREAD_FUNNELED where the program has threads, and this must be called, as all
/// calls on the communicator, on the thread that initialised it. Handles may outlive MPI_Finalize; operations may not.
inline Communicator mpi_communicator(MPI_Comm comm, MpiOptions options = {}) {
    require(detail::mpi_is_alive(), "mpi_communicator: MPI is not initialised, or finalised already");
    detail::check_world();
    require(comm != MPI_COMM_NULL, "mpi_communicator: MPI_COMM_NULL; this rank is not in the group");
    require(options.block_bytes >= 1 && options.block_bytes <= std::numeric_limits<int>::max(),
            "mpi_communicator: blocks of ", options.block_bytes, " bytes; want 1 to ", std::numeric_limits<int>::max());
    require(options.node_ranks >= 0, "mpi_communicator: ", options.node_ranks, " ranks a node; want 0 or more");
    require(options.chunk_bytes >= 256 && options.chunk_bytes % 64 == 0, "mpi_communicator: chunks of ",
            options.chunk_bytes, " bytes; want a multiple of 64, at least 256");
    int between_groups = 0;
    int level = MPI_THREAD_SINGLE;
    int main_thread = 1;
    MPI_Comm_test_inter(comm, &between_groups);
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&main_thread);
    require(between_groups == 0, "mpi_communicator: an inter-communicator has no common ranks; merge it first");
    require(main_thread != 0 || level >= MPI_THREAD_SERIALIZED, "mpi_communicator: MPI was initialised for calls from ",
            "its main thread only (thread level below MPI_THREAD_SERIALIZED), and this is another thread");
    MPI_Comm duplicate = MPI_COMM_NULL;
    detail::mpi_check(MPI_Comm_dup(comm, &duplicate), "MPI_Comm_dup");
    options = detail::as_environment_says(duplicate, options);
    if (options.binding == Binding::automatic)
        detail::bind_ranks(duplicate);
    auto backend = std::make_shared<MpiBackend>(duplicate, options);
    return Communicator(detail::as_environment_says(std::move(backend), detail::some_rank_wants_checks(duplicate)));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
