#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/backend/self.hpp>
#include <reigen/comm/communicator/field.hpp>
#include <reigen/comm/communicator/operations.hpp>
#include <reigen/comm/communicator/pending.hpp>
#include <reigen/comm/communicator/run.hpp>
#include <reigen/comm/deadline.hpp>
#include <reigen/core/buffer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A group of ranks and the calling rank's place in it: the typed, validated face of a `Backend`. A handle, cheap to
/// copy; copies share deadline, traffic and state.
///
/// Ranges may be std::span, std::vector, std::array or Buffer, of float, double, bfloat16 or integers of 8 to 64 bits.
/// Sizes and parts count elements; a rank's part may be empty. The ranges of one call must not overlap, but a rank's
/// own part may already lie in its place in the whole.
///
/// Collective  the calls documented as such are made by every rank of the group, in the same order, with matching sizes
/// Order       sums are taken in rank order, ((x_0 + x_1) + x_2) + ..., whatever the size, the backend or the timing,
///             so they are bit-identical on every rank and in every run; bfloat16 is summed in float and rounded once.
///             An all-reduce of other types over several nodes sums in rank order in each, then in the nodes' order
/// Cost        what is given for each is what its messages carry, and `traffic` counts, also where ranks share memory
///             and none is sent (`describe`). Over several nodes an all_reduce, all_gather or long broadcast may go
///             through the memory of each: all ranks together then send as much, for equal parts, in fewer messages
/// Throws      ArgumentError, ShapeError before any message, for what the calling rank can see to be wrong;
///             TimeoutError after `deadline()` seconds of waiting; PeerError where another rank failed or left;
///             ShapeError for messages of unlike sizes; CommunicationError from the transport, and once the
///             communicator has failed.
///             A blocking call that ends so over MPI may leave a send that MPI cannot take back; the communicator has
///             then failed, and as long as MPI is called its range is to stay. Started operations keep their own
class Communicator final {
  public:
    /// Largest tag of a message.
    static constexpr int max_tag = detail::max_tag;

    /// This rank alone.
    Communicator() : Communicator(std::make_shared<SelfBackend>()) {}

    explicit Communicator(std::shared_ptr<Backend> backend) : state_(std::make_shared<detail::CommunicatorState>()) {
        require(backend != nullptr, "Communicator: no backend");
        state_->backend = std::move(backend);
    }

    int rank() const { return state_->backend->rank(); }
    int size() const { return state_->backend->size(); }

    /// Sends to another rank; returns when the range may be changed again, which may be only when it is received.
    template <ElementRange In>
    void send(const In& in, int to, int tag = 0) const {
        run(operations().send(detail::source(in), to, tag));
    }

    /// Receives exactly `out` from another rank. Messages of one rank with equal tags come in the order they were sent.
    template <WritableElementRange Out>
    void receive(Out&& out, int from, int tag = 0) const {
        run(operations().receive(detail::target(out), from, tag));
    }

    /// Reduces each element over the ranks, in place, to the same bits everywhere. Collective.
    ///
    /// Cost  n + (P - 2) n_r elements sent, n_r = n/P the rank's slice: 2 n (P - 1)/P in at most 2 (P - 1) messages
    template <WritableElementRange InOut>
    void all_reduce(InOut&& in_place, Reduction reduction = Reduction::sum) const {
        run(detail::Operations::all_reduce(detail::target(in_place), reduction));
    }

    /// Gives every rank the ranks' parts, one after the other. `parts`: elements of each rank; none = equal.
    /// Collective.
    ///
    /// Cost  (P - 1) n_r elements sent in P - 1 messages
    template <ElementRange Mine, WritableElementRange All>
    void all_gather(const Mine& mine, All&& all, std::span<const Index> parts = {}) const {
        same_elements<Mine, All>();
        run(operations().all_gather(detail::source(mine), detail::target(all), parts));
    }

    /// Reduces over the ranks, of which rank r keeps part r. `parts`: elements of each rank; none = equal. Collective.
    ///
    /// Cost  n - n_r elements sent in P - 1 messages
    template <ElementRange All, WritableElementRange Mine>
    void reduce_scatter(const All& all, Mine&& mine, Reduction reduction = Reduction::sum,
                        std::span<const Index> parts = {}) const {
        same_elements<All, Mine>();
        run(operations().reduce_scatter(detail::source(all), detail::target(mine), reduction, parts));
    }

    /// Gives every rank what `root` has. Collective.
    ///
    /// Cost  n elements to each of at most ceil(log2 P) ranks
    template <WritableElementRange InOut>
    void broadcast(InOut&& in_place, int root) const {
        run(operations().broadcast(detail::target(in_place), root));
    }

    /// Part j of `out` goes to rank j, part i of `in` comes from rank i. Collective.
    ///
    /// Cost  n - n_r elements sent in P - 1 messages
    template <ElementRange Out, WritableElementRange In>
    void all_to_all(const Out& out, std::span<const Index> out_parts, In&& in, std::span<const Index> in_parts) const {
        same_elements<Out, In>();
        run(operations().all_to_all(detail::source(out), out_parts, detail::target(in), in_parts));
    }

    /// Returns when every rank has come. Collective.
    void barrier() const { run(Operation{}); }

    /// Where this rank can read what each rank shows of its memory, this rank's own among it; empty on all ranks where
    /// one's cannot be read so. Before it is written again or freed, the ranks have to `meet`; `Shown` sees to that.
    /// Collective.
    std::vector<const std::byte*> show(std::span<const std::byte> mine) const;

    /// A barrier that `traffic` does not count. Collective.
    void meet() const {
        Operation operation;
        operation.counted = false;
        run(operation);
    }

    /// Makes sure that all ranks have the same fields(), a std::vector<Field>: what an algorithm made of messages calls
    /// before the first of them, with the sizes that decide who sends what. Collective where the communicator is
    /// `checked`; where it is not, nothing, and `fields` is not called.
    ///
    ///     ranks.agree("shift", [&] { return std::vector<Field>{{"tokens", tokens}, {"width", width}}; });
    ///
    /// Throws  DisagreementError, the same on every rank
    template <class Fields>
    void agree(const char* name, const Fields& fields) const {
        if (!state_->backend->compares())
            return;
        std::string claim = name;
        for (const char* between = " of "; const Field& field : fields())
            claim += std::exchange(between, ", ") + field.text;
        Operation operation;
        operation.call = Call::agree;
        operation.claim = claim;
        run(operation);
    }

    /// The ranks of equal `color` (>= 0) as a group, ordered by `key`, then by rank. Collective. Inherits the deadline.
    Communicator split(int color, int key, const std::string& name = {}) const;

    /// What traces and tables call it: "world" unless named, "NAME/split" for a part of NAME that was given no name.
    const std::string& name() const {
        static const std::string world = "world";
        return name_ != nullptr ? *name_ : world;
    }

    /// Another handle of the same communicator, under another name.
    Communicator named(const std::string& name) const {
        Communicator handle = *this;
        handle.name_ = &*state_->names.insert(name).first;
        return handle;
    }

    // Started operations own their buffers until they are done. Any number may be in flight and be waited for in any
    // order; every rank starts the collectives in the same order.

    template <Element T>
    Pending<T> start_send(Buffer<T> in, int to, int tag = 0) const {
        const Operation operation = operations().send(detail::source(in), to, tag);
        return start<T>(operation, std::move(in), {});
    }

    template <Element T>
    Pending<T> start_receive(Buffer<T> out, int from, int tag = 0) const {
        const Operation operation = operations().receive(detail::target(out), from, tag);
        return start<T>(operation, std::move(out), {});
    }

    template <Element T>
    Pending<T> start_all_reduce(Buffer<T> in_place, Reduction reduction = Reduction::sum) const {
        const Operation operation = detail::Operations::all_reduce(detail::target(in_place), reduction);
        return start<T>(operation, std::move(in_place), {});
    }

    template <Element T>
    Pending<T> start_all_gather(Buffer<T> mine, Buffer<T> all, std::span<const Index> parts = {}) const {
        const Operation operation = operations().all_gather(detail::source(mine), detail::target(all), parts);
        return start<T>(operation, std::move(all), std::move(mine));
    }

    template <Element T>
    Pending<T> start_reduce_scatter(Buffer<T> all, Buffer<T> mine, Reduction reduction = Reduction::sum,
                                    std::span<const Index> parts = {}) const {
        const Operation operation =
            operations().reduce_scatter(detail::source(all), detail::target(mine), reduction, parts);
        return start<T>(operation, std::move(mine), std::move(all));
    }

    template <Element T>
    Pending<T> start_broadcast(Buffer<T> in_place, int root) const {
        const Operation operation = operations().broadcast(detail::target(in_place), root);
        return start<T>(operation, std::move(in_place), {});
    }

    template <Element T>
    Pending<T> start_all_to_all(Buffer<T> out, std::span<const Index> out_parts, Buffer<T> in,
                                std::span<const Index> in_parts) const {
        const Operation operation =
            operations().all_to_all(detail::source(out), out_parts, detail::target(in), in_parts);
        return start<T>(operation, std::move(in), std::move(out));
    }

    /// Seconds after which a wait on this communicator gives up; 0 = never. For a scope: `Deadline`; for one wait:
    /// `Pending::wait(seconds)`.
    double deadline() const { return state_->deadline; }
    void set_deadline(double seconds) const { state_->deadline = detail::checked_deadline("set_deadline", seconds); }

    /// Messages and bytes this rank has sent over this communicator, collectives included.
    Traffic traffic() const { return state_->backend->traffic(); }

    /// Whether an operation here ended in a way that leaves the group without a common order; everything throws then.
    bool failed() const { return !state_->failure.empty(); }

    /// What it stands on, for backends that wrap another.
    const std::shared_ptr<Backend>& backend() const { return state_->backend; }

    /// Whether both are handles of the same communicator.
    bool operator==(const Communicator& other) const { return state_ == other.state_; }

  private:
    template <class In, class Out>
    static void same_elements() {
        static_assert(std::is_same_v<std::ranges::range_value_t<In>, std::ranges::range_value_t<Out>>,
                      "reigen: both ranges of a collective hold elements of one type");
    }

    detail::Operations operations() const { return {rank(), size()}; }

    /// Gives a collective its order number as a tag, apart from the tags of messages.
    bool prepare(Operation& operation) const {
        detail::check_memory(operation);
        require<CommunicationError>(!failed(), to_string(operation.call),
                                    ": this communicator failed earlier: ", state_->failure);
        operation.group = name();
        const bool collective = operation.call != Call::send && operation.call != Call::receive;
        if (collective)
            operation.tag = max_tag + 1 + int(state_->order++ & max_tag);
        return collective;
    }

    void run(Operation operation) const {
        operation.blocks = true;
        const bool collective = prepare(operation);
        detail::run(state_, collective, operation);
    }

    template <class T>
    Pending<T> start(Operation operation, Buffer<T> result, Buffer<T> source) const {
        using Holder = typename Pending<T>::Holder;
        const bool collective = prepare(operation);
        auto task = std::make_shared<Holder>(std::move(result), std::move(source));
        return Pending<T>(detail::start(std::move(task), state_, collective, operation));
    }

    std::shared_ptr<detail::CommunicatorState> state_;
    const std::string* name_ = nullptr; // among the state's; none: "world"
};

inline std::vector<const std::byte*> Communicator::show(std::span<const std::byte> mine) const {
    const Backend& backend = *state_->backend;
    if (!backend.reads_in_place())
        return {};
    const SharedAddress own =
        mine.empty() ? SharedAddress::of_nothing() : backend.address_of(mine.data(), Index(mine.size()));
    const std::array<std::uint64_t, 2> told = {own.address, own.behind_start};
    std::vector<std::uint64_t> all(2 * std::size_t(size()));
    Operation operation = operations().all_gather(detail::source(told), detail::target(all), {});
    operation.counted = false;
    run(operation);
    std::vector<const std::byte*> shown;
    for (int r = 0; r < size(); ++r) {
        const SharedAddress memory{all[2 * std::size_t(r)], all[2 * std::size_t(r) + 1]};
        if (!memory.in_place())
            return {};
        const bool elsewhere = r != rank() && memory != SharedAddress::of_nothing();
        shown.push_back(elsewhere ? backend.in_place(r, memory) : mine.data());
    }
    return shown;
}

inline Communicator Communicator::split(int color, int key, const std::string& name) const {
    require(color >= 0, "split: color ", color, "; want 0 or more");
    struct Member {
        int key, rank;
        auto operator<=>(const Member&) const = default;
    };
    const std::array<int, 2> mine = {color, key};
    std::vector<int> all(2 * std::size_t(size()));
    all_gather(mine, all);
    std::vector<Member> group;
    for (int r = 0; r < size(); ++r)
        if (all[2 * std::size_t(r)] == color)
            group.push_back({all[2 * std::size_t(r) + 1], r});
    std::ranges::sort(group);
    std::vector<int> members;
    for (const Member& member : group)
        members.push_back(member.rank);
    Communicator child(state_->backend->split(color, members));
    child.set_deadline(deadline());
    return child.named(name.empty() ? this->name() + "/split" : name);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
