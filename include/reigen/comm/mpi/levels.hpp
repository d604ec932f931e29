#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/collectives/cost.hpp>
#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/collectives/schedule.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The groups in which a rank takes part where a group runs on several machines, as many ranks on each.
///
///     node 0   rank 0  1  2        in_node   0 1 2       3 4 5
///     node 1   rank 3  4  5        across    0 3   1 4   2 5
struct Levels {
    std::shared_ptr<Backend> in_node; // whose ranks share memory
    std::shared_ptr<Backend> across;  // one rank of each node, in the order of the nodes
    std::vector<int> by_node;         // the group's ranks, one node after the other
    bool numbered_by_node = true; // whether that is their order, so that what the ranks of a node have lies together
    std::uint64_t begun = 0;      // collectives
    std::uint64_t ended = 0;
    std::string broken = {}; // why one of them did not come to its end

    int node_ranks() const { return in_node->size(); }
    int nodes() const { return across->size(); }
    Traffic traffic() const { return in_node->traffic() + across->traffic(); }

    /// Those that go over both levels, for people.
    const char* calls() const {
        return numbered_by_node ? "all_reduce, all_gather and broadcast" : "all_reduce and broadcast";
    }
};

/// The parts of a node's ranks, of those of all ranks, one node after the other.
inline std::span<const Index> parts_on(std::span<const Index> parts, int node, int node_ranks) {
    const auto ranks = std::size_t(node_ranks);
    return parts.subspan(std::size_t(node) * ranks, ranks);
}

/// What one rank sends in the collectives over two levels, by their schedules.
struct LevelsTraffic {
    int rank = 0; // in its node
    int node_ranks = 1;
    int node = 0;
    int nodes = 1;

    Traffic of_all_reduce(Index count, Index element_bytes) const {
        const auto slices = balanced_parts(count, node_ranks);
        const Index mine = slices[std::size_t(rank)];
        return sends_of_parts(slices, rank, element_bytes) + sends_of_all_reduce(mine, node, nodes, element_bytes) +
               sends_of_equal_parts(mine, node_ranks, element_bytes);
    }

    /// `parts`: of each rank of the group, of which those of a node follow each other.
    Traffic of_all_gather(std::span<const Index> parts, Index element_bytes) const {
        const auto own = parts_on(parts, node, node_ranks)[std::size_t(rank)];
        Traffic sent = sends_of_equal_parts(own, node_ranks, element_bytes);
        for (int n = 0; n < nodes; ++n) {
            const Index block = sum_of(parts_on(parts, n, node_ranks));
            const Index slice = balanced_parts(block, node_ranks)[std::size_t(rank)];
            sent = sent + sends_of_equal_parts(slice, n == node ? nodes : node_ranks, element_bytes);
        }
        return sent;
    }

    /// `root`: number of the group's rank in the numbering by nodes.
    Traffic of_broadcast(Index count, int root, Index element_bytes) const {
        const Index slice = balanced_parts(count, node_ranks)[std::size_t(rank)];
        const int root_node = root / node_ranks;
        return sends_of_broadcast(slice * element_bytes, node, nodes, root_node) +
               (node == root_node ? sends_of_broadcast(count * element_bytes, rank, node_ranks, root % node_ranks)
                                  : sends_of_equal_parts(slice, node_ranks, element_bytes));
    }
};

/// A collective in stages, each of them one of the groups that `Levels` has: the base of all such.
///
/// Those of a group come one after the other, in the order of their start: the ranks of a node would otherwise come to
/// the stages of two of them in different orders.
class TwoLevelCollective : public Started {
  public:
    TwoLevelCollective(Levels& levels, const Operation& operation, Traffic sent)
        : levels_(levels), operation_(operation), number_(levels.begun++) {
        operation_.messages = nullptr; // which number ranks as the whole group does
        operation_.parts = {};
        if (operation.messages != nullptr && operation.counted)
            operation.messages->take_note(sent);
    }

    ~TwoLevelCollective() override {
        if (!complete_)
            levels_.broken = to_string(operation_) + ", which was given up";
    }

    bool advance() override {
        if (complete_)
            return true;
        require<CommunicationError>(levels_.broken.empty(), "after ", levels_.broken);
        if (levels_.ended != number_)
            return false;
        for (; stage_ < stages(); ++stage_, started_.reset()) {
            if (!started_)
                started_ = start(stage_);
            if (started_ && !started_->advance())
                return false;
        }
        complete_ = true;
        ++levels_.ended;
        return true;
    }

    bool revoke() noexcept override { return !started_ || started_->revoke(); }

    std::string waits_for() const override {
        if (!started_)
            return concat("an earlier collective in ", to_string(operation_));
        return concat(started_->waits_for(), ", which is ", name_of(stage_), " of ", to_string(operation_));
    }

  protected:
    Levels& levels() const { return levels_; }
    const Operation& operation() const { return operation_; }
    int rank_in_node() const { return levels_.in_node->rank(); }
    std::byte* out(Index first) const { return operation_.out + first * size_of(operation_.type); }

    /// The same call, or another one, on this memory.
    Operation step(Call call, const std::byte* in, Index in_size, std::byte* out, Index out_size) const {
        Operation result = operation_;
        result.call = call;
        result.in = in;
        result.in_size = in_size;
        result.out = out;
        result.out_size = out_size;
        return result;
    }

    /// Each rank of the node has its slice of `count` elements of `out` from `first` on; then it has all.
    std::unique_ptr<Started> gather_in_node(Index first, Index count) const {
        const auto slices = balanced_parts(count, levels_.node_ranks());
        const auto mine = std::size_t(rank_in_node());
        Operation gather =
            step(Call::all_gather, out(first + starts_of(slices)[mine]), slices[mine], out(first), count);
        gather.parts = slices;
        return levels_.in_node->start_collective(gather);
    }

  private:
    virtual std::size_t stages() const = 0;

    /// Null where this rank has no part in a stage.
    virtual std::unique_ptr<Started> start(std::size_t stage) const = 0;
    virtual const char* name_of(std::size_t stage) const = 0;

    Levels& levels_;
    Operation operation_;
    std::uint64_t number_;
    std::size_t stage_ = 0;
    bool complete_ = false;
    std::unique_ptr<Started> started_;
};

/// An all-reduce of which each rank of a node sends only its slice to other nodes: the node's ranks sum their slices in
/// shared memory, add those of the other nodes, and gather the sums in shared memory.
///
/// Order  each element in rank order within a node, then in the order of the nodes
/// Cost   n/L elements and its share of them to other nodes, as an all_reduce of so many; L the ranks of a node
class TwoLevelAllReduce final : public TwoLevelCollective {
  public:
    TwoLevelAllReduce(Levels& levels, const Operation& operation, const LevelsTraffic& traffic)
        : TwoLevelCollective(levels, operation, traffic.of_all_reduce(operation.out_size, size_of(operation.type))),
          slices_(balanced_parts(operation.out_size, levels.node_ranks())) {}

  private:
    std::size_t stages() const override { return 3; }

    const char* name_of(std::size_t stage) const override {
        constexpr const char* names[] = {"the sum in the node", "the sum across nodes", "the gathering in the node"};
        return names[stage];
    }

    std::unique_ptr<Started> start(std::size_t stage) const override {
        const Index count = slices_[std::size_t(rank_in_node())];
        std::byte* const mine = out(starts_of(slices_)[std::size_t(rank_in_node())]);
        if (stage == 0) {
            Operation scatter = step(Call::reduce_scatter, operation().out, operation().out_size, mine, count);
            scatter.parts = slices_;
            return levels().in_node->start_collective(scatter);
        }
        if (stage == 1)
            return levels().across->start_collective(step(Call::all_reduce, mine, count, mine, count));
        return gather_in_node(0, operation().out_size);
    }

    std::vector<Index> slices_;
};

/// An all-gather in which each part crosses to another node once: the ranks of a node gather theirs in shared memory,
/// each sends its slice of them to one rank of every other node, and the slices that came are gathered in shared memory.
///
/// Cost   1/L of what the node has to each other node, in one message; L the ranks of a node. Without nodes each part
///        would cross to another one L times: two hosts of two ranks take 0.4 to 0.6 of the time at 1 Gbit/s from 256 KB
///        on, and 0.3 to 0.8 at 10 Gbit/s
class TwoLevelAllGather final : public TwoLevelCollective {
  public:
    TwoLevelAllGather(Levels& levels, const Operation& operation, std::vector<Index> parts,
                      const LevelsTraffic& traffic)
        : TwoLevelCollective(levels, operation, traffic.of_all_gather(parts, size_of(operation.type))),
          parts_(std::move(parts)) {
        for (int node = 0; node < levels.nodes(); ++node)
            blocks_.push_back(sum_of(parts_of_node(node)));
        starts_ = starts_of(blocks_);
    }

  private:
    std::size_t stages() const override { return 1 + std::size_t(levels().nodes()); }

    const char* name_of(std::size_t stage) const override {
        return stage == 0   ? "the gathering in the node"
               : stage == 1 ? "the exchange across nodes"
                            : "the gathering of what came to the node";
    }

    std::unique_ptr<Started> start(std::size_t stage) const override {
        if (stage == 0)
            return gather_own();
        if (stage == 1)
            return std::make_unique<Execution>(*levels().across, operation(), exchange());
        const int node = (own_node() + int(stage) - 1) % levels().nodes();
        return gather_in_node(starts_[std::size_t(node)], blocks_[std::size_t(node)]);
    }

    int own_node() const { return levels().across->rank(); }

    std::span<const Index> parts_of_node(int node) const { return parts_on(parts_, node, levels().node_ranks()); }

    std::unique_ptr<Started> gather_own() const {
        const auto node = std::size_t(own_node());
        Operation gather =
            step(Call::all_gather, operation().in, operation().in_size, out(starts_[node]), blocks_[node]);
        gather.parts = parts_of_node(own_node());
        return levels().in_node->start_collective(gather);
    }

    /// This rank's slice of its own node's block to those of its place in the other nodes, and theirs from them.
    Schedule exchange() const {
        Round round;
        for (const int node : peers_of(own_node(), levels().nodes())) {
            send(round, node, slice_of(own_node()));
            receive(round, node, slice_of(node));
        }
        return {{std::move(round)}, 0};
    }

    Piece slice_of(int node) const {
        const auto slices = balanced_parts(blocks_[std::size_t(node)], levels().node_ranks());
        const auto mine = std::size_t(rank_in_node());
        return {Memory::out, starts_[std::size_t(node)] + starts_of(slices)[mine], slices[mine]};
    }

    std::vector<Index> parts_;  // of each rank
    std::vector<Index> blocks_; // of each node
    std::vector<Index> starts_; // of the blocks
};

/// A broadcast that crosses to each other node once, in slices: the root's node reads it in shared memory, each of its
/// ranks tells its slice to those of its place in the other nodes, which gather the slices in shared memory.
///
/// Cost   n/L elements to each of at most ceil(log2 M) nodes; L the ranks of a node, M the nodes
class TwoLevelBroadcast final : public TwoLevelCollective {
  public:
    /// From here on stages are worth their latency: between two hosts at 1 Gbit/s, of two ranks each, 16 KB took as long
    /// in either way, 1 KB 1.2 times as long in stages, and 256 KB half as long.
    static constexpr Index least_bytes = Index(32) << 10;

    /// `root`: in the numbering by nodes.
    TwoLevelBroadcast(Levels& levels, const Operation& operation, int root, const LevelsTraffic& traffic)
        : TwoLevelCollective(levels, operation,
                             traffic.of_broadcast(operation.out_size, root, size_of(operation.type))),
          root_(root) {}

  private:
    std::size_t stages() const override { return 3; }

    const char* name_of(std::size_t stage) const override {
        constexpr const char* names[] = {"the telling in the node", "the telling across nodes",
                                         "the gathering in the node"};
        return names[stage];
    }

    std::unique_ptr<Started> start(std::size_t stage) const override {
        const Index count = operation().out_size;
        const int root_node = root_ / levels().node_ranks();
        const bool is_roots = levels().across->rank() == root_node;
        if (stage == 0)
            return is_roots ? levels().in_node->start_collective(told(0, count, root_ % levels().node_ranks()))
                            : nullptr;
        if (stage == 2)
            return is_roots ? nullptr : gather_in_node(0, count);
        const auto slices = balanced_parts(count, levels().node_ranks());
        const auto mine = std::size_t(rank_in_node());
        return levels().across->start_collective(told(starts_of(slices)[mine], slices[mine], root_node));
    }

    Operation told(Index first, Index count, int root) const {
        Operation result = step(Call::broadcast, out(first), count, out(first), count);
        result.peer = root;
        return result;
    }

    int root_;
};

/// Whether a collective goes over both levels. A sum of bfloat16 is rounded once, and a reduce_scatter sums in rank order
/// over all nodes, in the bits of the products that overlap their own sum.
inline bool has_two_levels(const Levels& levels, const Operation& operation) {
    switch (operation.call) {
    case Call::all_reduce:
        return operation.type != DataType::bf16;
    case Call::all_gather:
        return levels.numbered_by_node;
    case Call::broadcast:
        return operation.out_size * size_of(operation.type) >= TwoLevelBroadcast::least_bytes;
    default:
        return false;
    }
}

inline std::unique_ptr<Started> start_on_two_levels(Levels& levels, const Operation& operation) {
    const LevelsTraffic traffic = {levels.in_node->rank(), levels.node_ranks(), levels.across->rank(), levels.nodes()};
    if (operation.call == Call::all_reduce)
        return std::make_unique<TwoLevelAllReduce>(levels, operation, traffic);
    if (operation.call == Call::broadcast) {
        const auto root = std::ranges::find(levels.by_node, operation.peer) - levels.by_node.begin();
        return std::make_unique<TwoLevelBroadcast>(levels, operation, int(root), traffic);
    }
    auto parts = parts_of(operation, operation.out_size, int(levels.by_node.size()));
    return std::make_unique<TwoLevelAllGather>(levels, operation, std::move(parts), traffic);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
