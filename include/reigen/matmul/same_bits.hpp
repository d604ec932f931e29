#pragma once

#include <reigen/kernel/gemm.hpp>
#include <reigen/layout/redistribution_steps.hpp>
#include <reigen/matmul/checks.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail::same_bits {

// The sum over k-blocks is a binary tree over all of them, whoever holds them:
//
//     level 2          s0
//                   /      \                     block b is node (0, b); node (l, i) is the sum of (l-1, 2i) and
//     level 1     s0        s1                   (l-1, 2i+1), or the first alone where the second does not exist.
//                /  \      /                     Every rank sums as far as its own blocks allow and sends what is left:
//     level 0   0    1    2                      with blocks 0 1 | 2, rank 0 sends (1, 0) and rank 1 sends (1, 1).

/// Place of a node in the tree.
struct Node {
    int level = 0;
    Index index = 0;
    auto operator<=>(const Node&) const = default;

    Node parent() const { return {level + 1, index / 2}; }
    Node sibling() const { return {level, index ^ 1}; }
};

/// The shape of the tree over `blocks` leaves.
class Tree {
  public:
    explicit Tree(Index blocks) : blocks_(blocks) {}

    Index width(int level) const { return (blocks_ + (Index(1) << level) - 1) >> level; }
    bool exists(const Node& node) const { return node.index < width(node.level); }
    bool is_root(const Node& node) const { return width(node.level) == 1; }

  private:
    Index blocks_;
};

/// Enters a node's value and sums upwards as long as the sibling is there: `add(into, other)` with the left one first.
template <class Value, class Add>
void enter(const Tree& tree, std::map<Node, Value>& nodes, Node node, Value value, Add add) {
    while (!tree.is_root(node)) {
        if (tree.exists(node.sibling())) {
            const auto other = nodes.find(node.sibling());
            if (other == nodes.end())
                break;
            if (node.index % 2 == 1)
                std::swap(value, other->second);
            add(value, other->second);
            nodes.erase(other);
        }
        node = node.parent();
    }
    nodes.emplace(node, std::move(value));
}

/// The k-blocks that a rank holds, in its order; throws unless they are whole.
inline std::vector<Index> blocks_of(const Partition& k, int rank, Index k_block) {
    const Runs& runs = k.runs(rank);
    std::vector<Index> blocks;
    for (Index first = 0; first < runs.size(); first += std::min(k_block, k.size() - runs[first])) {
        const Index size = std::min(k_block, k.size() - runs[first]);
        require<ShapeError>(runs[first] % k_block == 0 && first + size <= runs.size() &&
                                runs.slice(first, size) == Runs::range(runs[first], size),
                            "matmul_same_bits: rank ", rank, " holds ", runs.to_string(), " of k = ", k.size(),
                            ", not whole blocks of ", k_block, "; divide k with Partition::balanced(k, ranks, ",
                            k_block, ")");
        blocks.push_back(runs[first] / k_block);
    }
    return blocks;
}

/// The nodes that each rank is left with.
inline std::vector<std::vector<Node>> nodes_of_ranks(const Partition& k, Index k_block, const Tree& tree) {
    std::vector<std::vector<Node>> result;
    for (int rank = 0; rank < k.ranks(); ++rank) {
        std::map<Node, char> nodes;
        for (const Index block : blocks_of(k, rank, k_block))
            enter(tree, nodes, {0, block}, char(), [](char&, char) {});
        result.emplace_back();
        for (const auto& [node, unused] : nodes)
            result.back().push_back(node);
    }
    return result;
}

/// Values of one size, of which those that have been added to others are used again.
template <class T>
class Values {
  public:
    explicit Values(Index size) : size_(size) {}

    Buffer<T> take() {
        if (spares_.empty())
            return Buffer<T>(size_);
        Buffer<T> value = std::move(spares_.back());
        spares_.pop_back();
        return value;
    }

    void give(Buffer<T> value) { spares_.push_back(std::move(value)); }

    /// What `enter` adds values by.
    auto adding() {
        return [this](Buffer<T>& into, Buffer<T>& other) {
            for (Index i = 0; i < into.size(); ++i)
                into[i] += other[i];
            give(std::move(other));
        };
    }

  private:
    Index size_;
    std::vector<Buffer<T>> spares_;
};

/// Columns of the product that are worked on at once, so that a value is still in a cache when it is added to the next.
/// With 512 rows, 4096 of k and 1024 columns all of this takes 1.10 to 1.18 times as long as one product; with all columns
/// at once, and memory of its own for each value, 1.31 to 1.36 times.
template <class T>
Index columns_at_once(Index rows) {
    constexpr Index bytes = Index(1) << 19, unit = 128;
    return std::max(bytes / (Index(sizeof(T)) * std::max<Index>(rows, 1)) / unit, Index(1)) * unit;
}

/// This rank's nodes with their values: a product for each of its blocks, summed as far as they go.
template <class S, class T = Accumulator<S>>
std::map<Node, Buffer<T>> local_nodes(const Partition& k, int rank, Index k_block, const Tree& tree, Strided<const S> a,
                                      Strided<const S> b) {
    std::map<Node, Buffer<T>> whole;
    const std::vector<Index> blocks = blocks_of(k, rank, k_block);
    const Index step = columns_at_once<T>(a.rows);
    for (Index column = 0; column < b.cols; column += step) {
        const Index columns = std::min(step, b.cols - column);
        Values<T> values(a.rows * columns);
        std::map<Node, Buffer<T>> nodes;
        Index first = 0;
        for (const Index block : blocks) {
            const Index size = std::min(k_block, k.size() - block * k_block);
            Buffer<T> product = values.take();
            gemm(T(1), a.block(0, first, a.rows, size), b.block(first, column, size, columns), T(0),
                 row_major(product.data(), a.rows, columns));
            enter(tree, nodes, {0, block}, std::move(product), values.adding());
            first += size;
        }
        for (const auto& [node, value] : nodes) {
            const auto place = whole.try_emplace(node, a.rows * b.cols).first;
            for_block(Strided<const T>(row_major(value.data(), a.rows, columns)),
                      row_major(place->second.data(), a.rows, b.cols).block(0, column, a.rows, columns),
                      AssignElement());
        }
    }
    return whole;
}

/// Every rank sums one share of the elements over all nodes, then all shares go to every rank.
template <class T>
Buffer<T> sum_over_ranks(const Communicator& ranks, const std::vector<std::vector<Node>>& nodes, const Tree& tree,
                         std::map<Node, Buffer<T>> mine, Index size) {
    if (ranks.size() == 1)
        return std::move(mine.begin()->second);
    const Partition shares = Partition::balanced(size, ranks.size());
    const auto share = [&](int rank) { return balanced_range(size, ranks.size(), rank); };
    const Index own = share(ranks.rank()).count;
    std::vector<Index> out_parts;
    std::vector<Index> in_parts;
    const bool is_one = mine.size() == 1; // whose shares follow each other
    Buffer<T> out = is_one ? std::move(mine.begin()->second) : Buffer<T>(Index(mine.size()) * size);
    T* next = out.data();
    for (int q = 0; q < ranks.size(); ++q) {
        if (!is_one)
            for (const auto& [node, value] : mine)
                next = std::copy_n(value.data() + share(q).first, share(q).count, next);
        out_parts.push_back(Index(mine.size()) * share(q).count);
        in_parts.push_back(Index(nodes[std::size_t(q)].size()) * own);
    }
    mine.clear();
    Buffer<T> in(redistribution::total(in_parts));
    ranks.all_to_all(out, out_parts, in, in_parts);

    Values<T> values(own);
    std::map<Node, Buffer<T>> sums;
    const T* received = in.data();
    for (const std::vector<Node>& of_rank : nodes)
        for (const Node& node : of_rank) {
            Buffer<T> value = values.take();
            std::copy_n(received, own, value.data());
            enter(tree, sums, node, std::move(value), values.adding());
            received += own;
        }
    Buffer<T> all(size);
    ranks.all_gather(sums.begin()->second, all, shares.counts());
    return all;
}

} // namespace detail::same_bits

/// Plain matrices do not compile, as in `matmul`.
template <class A, class B>
    requires detail::PartlySharded<A, B>
auto matmul_same_bits(const A&, const B&, Index = 256) {
    detail::refuse_plain_matrices<A, B>();
}

/// C = A B summed over the ranks, with the same bits however many ranks k is divided over.
///
/// k is cut into blocks of `k_block`; each gives a product of its own, and a fixed binary tree over the blocks sums
/// them, so the bits depend on k_block and on nothing else. `matmul` and `redistribute` are cheaper where that is not
/// needed.
///
/// Shapes      a [m, k], b [k, n], global; k in whole k-blocks on every rank: Partition::balanced(k, ranks, k_block).
///             The result is [m, n], placed as the product after its sum
/// Cost        2 m n k flops over the local sizes, without the reuse of C over more than k_block of k; each rank keeps
///             and sends L (P - 1)/P m n elements, where L <= 2 log2(number of blocks) counts the subtrees its blocks
///             complete (1 where blocks and ranks are powers of two), then gathers m n: the plain sum has L = 1
/// Collective  over the axes that split k
/// Throws      ShapeError on every rank: shapes or partitions differ, or k is not in whole k-blocks
/// Order       fixed by k and k_block alone
template <ShardedLike A, ShardedLike B>
auto matmul_same_bits(const A& a, const B& b, Index k_block = 256) {
    constexpr Placement product_placement = product(placement_of<A>, placement_of<B>);
    detail::check_product<placement_of<A>, placement_of<B>>();
    using S = ScalarOf<A>;
    using T = Accumulator<S>;
    require(k_block >= 1, "matmul_same_bits: k_block is ", k_block);
    detail::require_factors(a.spec(), b.spec(), "matmul_same_bits");
    detail::require_no_copies(a.col_partition(), "matmul_same_bits", "");
    const Partition& k = a.col_partition();
    k_block = std::min(k_block, std::max<Index>(k.size(), 1));
    const detail::same_bits::Tree tree((k.size() + k_block - 1) / k_block);
    const auto nodes = detail::same_bits::nodes_of_ranks(k, k_block, tree);
    Sharded<S, summed(product_placement)> c(a.mesh(), a.row_partition(), b.col_partition());
    if (k.size() == 0 || c.local().size() == 0) { // on all ranks that sum together
        c.local().setZero();
        return c;
    }
    const MemoryScope scope(MemoryUse::messages);
    const Communicator& ranks = a.mesh()[placement_of<A>.cols];
    auto mine = detail::same_bits::local_nodes<S>(k, ranks.rank(), k_block, tree, a.strided(), b.strided());
    const auto to = c.strided();
    const Buffer<T> sum = detail::same_bits::sum_over_ranks(ranks, nodes, tree, std::move(mine), to.size());
    detail::for_block(Strided<const T>(detail::row_major(sum.data(), to.rows, to.cols)), to, detail::AssignElement());
    return c;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
