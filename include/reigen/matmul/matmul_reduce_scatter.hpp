#pragma once

#include <reigen/comm/collectives/reduce.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/row_blocks.hpp>

#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

template <Placement A, Placement B, Placement To>
constexpr void check_scattered_rows() {
    constexpr Placement p = product(A, B);
    static_assert(
        !can_multiply(A, B) || To == Placement{p.rows | p.partial, p.cols, Axes::none},
        "reigen: matmul_reduce_scatter<To>(a, b): To is the placement of a b with its summed axes among those "
        "of its rows; for anything else write redistribute<To>(matmul(a, b))");
}

/// A rank's share of a sum over the ranks: what the others have computed for it, and what it has itself.
template <class T>
class ScatteredSum {
  public:
    ScatteredSum(const Communicator& ranks, Index own_size) : ranks_(ranks), arriving_(std::size_t(ranks.size())) {
        if (own_size > 0)
            for (int q = 0; q < ranks.size(); ++q)
                if (q != ranks.rank())
                    arriving_[std::size_t(q)] = ranks.start_receive(Buffer<T>(own_size), q, tag);
    }

    /// Sends on its way what this rank adds to another one's share.
    void send(Buffer<T> block, int to) {
        if (!block.empty())
            leaving_.push_back(ranks_.start_send(std::move(block), to, tag));
    }

    /// Adds what has arrived to this rank's own summand, in rank order, when all of it has.
    void finish(Buffer<T>& own, T* sum) {
        std::vector<Buffer<T>> received;
        std::vector<const std::byte*> terms;
        for (Pending<T>& part : arriving_) {
            received.push_back(part.valid() ? part.wait() : Buffer<T>());
            const Buffer<T>& term = received.back().empty() ? own : received.back();
            terms.push_back(reinterpret_cast<const std::byte*>(term.data()));
        }
        reduce_in_order(Reduction::sum, terms, own.size(), sum);
        for (Pending<T>& block : leaving_)
            block.wait();
    }

  private:
    static constexpr int tag = 9;

    const Communicator& ranks_;
    std::vector<Pending<T>> arriving_;
    std::vector<Pending<T>> leaving_;
};

/// Computes the rows of the others, each on its way while the next ones are computed, and this rank's own last.
///
///     step        0  1  2     rank r computes the rows of (r + 1 + s) mod P at step s
///       rank 0    1  2  0
///       rank 1    2  0  1
///       rank 2    0  1  2
template <class S, class T, class Right>
void multiply_and_scatter(const Communicator& ranks, Strided<const S> a, const Right& b, Index cols,
                          const std::vector<Range>& blocks, Strided<S> sum) {
    using A = Accumulator<S>;
    const int size = ranks.size();
    const auto product_for = [&](int rank) {
        const Range& rows = blocks[std::size_t(rank)];
        Buffer<T> block(rows.count * cols);
        gemm_many_rows(A(1), rows_of_block(a, rows), b, A(0), row_major(block.data(), rows.count, cols));
        return block;
    };
    ScatteredSum<T> scattered(ranks, sum.size());
    for (int step = 1; step < size; ++step) {
        const int to = (ranks.rank() + step) % size;
        scattered.send(product_for(to), to);
    }
    Buffer<T> own = product_for(ranks.rank());
    if constexpr (std::is_same_v<S, T>) {
        scattered.finish(own, sum.data);
    } else {
        scattered.finish(own, own.data());
        for_block(Strided<const T>(row_major(own.data(), sum.rows, sum.cols)), sum, AssignElement());
    }
}

} // namespace detail

/// Plain matrices do not compile, as in `matmul`.
template <Placement To, class A, class B>
    requires detail::PartlySharded<A, B>
auto matmul_reduce_scatter(const A&, const B&) {
    detail::refuse_plain_matrices<A, B>();
}

/// Nor does a sum on a narrower wire.
template <Placement To, WireType Wire, class... X>
    requires(Wire == WireType::bf16)
auto matmul_reduce_scatter(const X&...) {
    static_assert(Wire == WireType::unchanged,
                  "reigen: matmul_reduce_scatter: sums travel in their own type, since each summand would be rounded; "
                  "leave the wire's type out");
}

/// redistribute<To>(matmul(a, b)), where `To` divides the rows over the axes that are summed over, while it is computed:
/// the rows of another rank are on their way to it while the next ones are multiplied, this rank's own come last.
///
///     auto y = matmul_reduce_scatter<split_rows(dp | cp | tp)>(h, w);    // h split over columns by tp, w over rows
///
/// Shapes      a [m, k], b [k, n], global; b may be packed (`PackedShard`); the result [m, n] is placed as To,
///             its rows divided by `rows` or, without, evenly within those of each rank
/// Cost        2 m n k flops over the local sizes; (m - m_r) n elements in P - 1 messages, as the reduce-scatter; as
///             memory the product, what arrives for this rank, and b packed. All that travels is hidden where a rank's k
///             is at least w F / (2 B): w bytes an element of the sum, F flops and B bytes a second. With fewer than 64
///             rows a rank, or rows that do not lie rank after rank, as the two calls
/// Collective  over the axes that are summed
/// Throws      as `matmul`, on every rank before any message
/// Order       in rank order: bitwise as the two calls. A sum of bfloat16 is taken in float and rounded once
/// Source      Wang et al., "Overlap communication with dependent computation via decomposition in large deep learning
///             models", ASPLOS 2023
template <Placement To, ShardedLike A, detail::IsPlaced B>
auto matmul_reduce_scatter(const A& a, const B& b, const Extent& rows) {
    detail::check_product<placement_of<A>, placement_of<B>>();
    detail::check_scattered_rows<placement_of<A>, placement_of<B>, To>();
    using S = ScalarOf<A>;
    constexpr Placement from = product(placement_of<A>, placement_of<B>);
    detail::require_factors(a.spec(), b.spec(), "matmul_reduce_scatter");
    detail::require_no_copies(a.col_partition(), "matmul_reduce_scatter", "");
    const ShardSpec whole = detail::product_spec(a, b);
    const ShardSpec to(a.mesh(), To, rows, b.col_partition());
    require<ShapeError>(to.rows() == a.rows(), "matmul_reduce_scatter: a b is ", shape(a.rows(), b.cols()),
                        ", the partition of its rows is for ", to.rows());
    const std::vector<Range> blocks = detail::row_blocks(whole, to, from.partial);
    if (blocks.empty())
        return redistribute<To>(matmul(a, b), to.row_partition, to.col_partition);
    const Communicator& ranks = a.mesh()[from.partial];
    detail::agree_on_product("matmul_reduce_scatter", ranks, a.spec(), b.spec());
    Sharded<S, To> c(to);
    const MemoryScope scope(MemoryUse::messages);
    detail::multiply_and_scatter<S, Stored<S, from>>(ranks, a.strided(), detail::packed_factor(b), to.local_cols(),
                                                     blocks, c.strided());
    return c;
}

template <Placement To, ShardedLike A, detail::IsPlaced B>
auto matmul_reduce_scatter(const A& a, const B& b) {
    return matmul_reduce_scatter<To>(a, b, rearranged(a.row_partition(), a.mesh(), placement_of<A>.rows, To.rows));
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
