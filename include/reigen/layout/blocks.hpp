#pragma once

#include <reigen/layout/head_groups.hpp>

#include <functional>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// One part of a fused dimension, such as the gate of gate|up, divided in units of `grain`.
struct NamedBlock {
    std::string name;
    Index size = 0;
    Index grain = 1;
};

/// Where one rank holds its share of a named block.
struct BlockPlace {
    Index first = 0; ///< the first of its local indices
    Index count = 0; ///< how many there are, one after the other
    Runs runs;       ///< which indices of the block they are, counted from the block's own start
};

/// A fused dimension made of named blocks (Q|K|V, gate|up), each of which is divided over the ranks by itself: a rank
/// holds its share of the first block, then of the second, and so on.
///
/// One description serves splitting, gathering, saving and loading.
///
///     NamedBlocks({{"gate", 3}, {"up", 3}}) over 2 ranks:   rank 0: g0 g1 u0 u1 = 0-1 3-4     rank 1: g2 u2 = 2 5
class NamedBlocks {
  public:
    NamedBlocks(std::initializer_list<NamedBlock> blocks)
        : NamedBlocks(std::span<const NamedBlock>(blocks.begin(), blocks.size())) {}

    explicit NamedBlocks(std::span<const NamedBlock> blocks) {
        for (const NamedBlock& block : blocks) {
            const auto [name, size, grain] = block;
            require(size >= 0 && grain >= 1, "NamedBlocks: ", name, " has size ", size, " and grain ", grain);
            add(name, Runs::range(size_, size),
                [size, grain](int ranks) { return Partition::balanced(size, ranks, grain); });
        }
    }

    /// Columns "q", "k", "v" of a fused projection, one block after the other: q0 q1 q2 q3 | k0 k1 | v0 v1.
    static NamedBlocks heads(HeadGroups groups, Index head_dim, Index value_dim) {
        require_heads(groups, head_dim, value_dim);
        NamedBlocks blocks{};
        const Index q = groups.query_heads * head_dim;
        const Index k = groups.kv_heads * head_dim;
        const Index v = groups.kv_heads * value_dim;
        blocks.add_heads(groups, head_dim, value_dim, Runs::range(0, q), Runs::range(q, k), Runs::range(q + k, v));
        return blocks;
    }

    static NamedBlocks heads(HeadGroups groups, Index head_dim) { return heads(groups, head_dim, head_dim); }

    /// The same where the storage goes group by group: q0 q1 k0 v0 | q2 q3 k1 v1. Ranks hold the same heads, in the
    /// same local order.
    static NamedBlocks interleaved_heads(HeadGroups groups, Index head_dim, Index value_dim) {
        require_heads(groups, head_dim, value_dim);
        NamedBlocks blocks{};
        const Index q_size = groups.group() * head_dim;
        Runs q;
        Runs k;
        Runs v;
        Index next = 0;
        for (Index g = 0; g < groups.kv_heads; ++g) {
            q.append({next, 1, q_size});
            k.append({next + q_size, 1, head_dim});
            v.append({next + q_size + head_dim, 1, value_dim});
            next += q_size + head_dim + value_dim;
        }
        blocks.add_heads(groups, head_dim, value_dim, q, k, v);
        return blocks;
    }

    static NamedBlocks interleaved_heads(HeadGroups groups, Index head_dim) {
        return interleaved_heads(groups, head_dim, head_dim);
    }

    /// Of the whole dimension.
    Index size() const { return size_; }

    Index size(const std::string& name) const { return find(name).where.size(); }

    /// Where the block lies in the whole dimension, in the block's order.
    const Runs& where(const std::string& name) const { return find(name).where; }

    std::vector<std::string> names() const {
        std::vector<std::string> result;
        for (const Block& block : blocks_)
            result.push_back(block.name);
        return result;
    }

    /// Of the whole dimension.
    Partition partition(int ranks) const {
        require(ranks >= 1, "NamedBlocks: over ", ranks, " ranks");
        std::vector<Runs> runs(static_cast<std::size_t>(ranks));
        for (const Block& block : blocks_) {
            const Partition shares = block.divide(ranks);
            for (int rank = 0; rank < ranks; ++rank)
                runs[std::size_t(rank)].append(composed(block.where, shares.runs(rank)));
        }
        return Partition::of_runs(size_, std::move(runs));
    }

    /// Of one block alone, counted from its own start: the rows of the matrix that multiplies it next.
    Partition partition(const std::string& name, int ranks) const { return find(name).divide(ranks); }

    BlockPlace place(const std::string& name, int ranks, int rank) const {
        Index first = 0;
        for (const Block& block : blocks_) {
            const Partition shares = block.divide(ranks);
            if (block.name == name)
                return {first, shares.count(rank), shares.runs(rank)};
            first += shares.count(rank);
        }
        throw ArgumentError(concat("NamedBlocks: no block \"", name, '"'));
    }

  private:
    struct Block {
        std::string name;
        Runs where;
        std::function<Partition(int ranks)> divide;
    };

    static void require_heads(const HeadGroups& groups, Index head_dim, Index value_dim) {
        require(head_dim >= 1 && value_dim >= 1, "NamedBlocks: heads of ", head_dim, " columns, values of ", value_dim);
        const Index width = detail::sum_of_sizes(head_dim, value_dim, "NamedBlocks");
        static_cast<void>(groups.group()); // that they group
        detail::product_of_sizes(detail::sum_of_sizes(groups.query_heads, groups.kv_heads, "NamedBlocks"), width,
                                 "NamedBlocks");
    }

    void add(std::string name, Runs where, std::function<Partition(int)> divide) {
        for (const Block& block : blocks_)
            require(block.name != name, "NamedBlocks: two blocks are named \"", name, '"');
        size_ = detail::sum_of_sizes(size_, where.size(), "NamedBlocks");
        blocks_.push_back({std::move(name), std::move(where), std::move(divide)});
    }

    void add_heads(HeadGroups groups, Index head_dim, Index value_dim, Runs q, Runs k, Runs v) {
        add("q", std::move(q), [=](int ranks) { return groups.query_partition(ranks, head_dim); });
        add("k", std::move(k), [=](int ranks) { return groups.kv_partition(ranks, head_dim); });
        add("v", std::move(v), [=](int ranks) { return groups.kv_partition(ranks, value_dim); });
    }

    const Block& find(const std::string& name) const {
        for (const Block& block : blocks_)
            if (block.name == name)
                return block;
        throw ArgumentError(concat("NamedBlocks: no block \"", name, '"'));
    }

    /// outer[inner[0]], outer[inner[1]], ...
    static Runs composed(const Runs& outer, const Runs& inner) {
        Runs result;
        for (const Run& piece : inner.pieces())
            result.append(outer.slice(piece.start, piece.count));
        return result;
    }

    std::vector<Block> blocks_;
    Index size_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
