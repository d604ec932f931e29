#pragma once

#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/row_blocks.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Pieces in which a product is summed: what is left to wait for is the sum of the last one.
inline Index pieces_to_sum(Index rows) {
    return std::clamp<Index>(rows / fewest_rows_a_step, 1, 4);
}

/// Some rows after the other: each is summed over the ranks while the next ones are computed.
template <class S, class T, class Right>
void multiply_and_sum_rows(const Communicator& ranks, Strided<const S> a, const Right& b, Strided<S> c) {
    using A = Accumulator<S>;
    const int pieces = int(pieces_to_sum(c.rows));
    std::vector<Pending<T>> sums;
    for (int piece = 0; piece < pieces; ++piece) {
        const Range rows = balanced_range(c.rows, pieces, piece);
        Buffer<T> block(rows.count * c.cols);
        gemm_many_rows(A(1), rows_of_block(a, rows), b, A(0), row_major(block.data(), rows.count, c.cols));
        sums.push_back(ranks.start_all_reduce(std::move(block)));
    }
    for (int piece = 0; piece < pieces; ++piece) {
        const Range rows = balanced_range(c.rows, pieces, piece);
        const Buffer<T> sum = sums[std::size_t(piece)].wait();
        for_block(row_major(sum.data(), rows.count, c.cols), rows_of_block(c, rows), AssignElement());
    }
}

} // namespace detail

/// Plain matrices do not compile, as in `matmul`.
template <class A, class B>
    requires detail::PartlySharded<A, B>
auto matmul_all_reduce(const A&, const B&) {
    detail::refuse_plain_matrices<A, B>();
}

/// sum(matmul(a, b)) while it is computed: the rows that are there are summed over the ranks as the next ones are
/// multiplied.
///
///     auto y = matmul_all_reduce(h, w);    // h split over columns by tp, w over rows
///
/// Shapes      a [m, k], b [k, n], global; b may be packed (`PackedShard`); the result [m, n] is placed as the product
///             after its sum
/// Cost        2 m n k flops over the local sizes; the bytes of an all-reduce, in up to four of as many rows, 64 or
///             more; as memory the product, twice, and b packed. The sum of the last rows is not hidden
/// Collective  over the axes that are summed
/// Throws      as `matmul`, on every rank before any message
/// Order       in rank order: bitwise as the two calls. A sum of bfloat16 is taken in float and rounded once
template <ShardedLike A, detail::IsPlaced B>
auto matmul_all_reduce(const A& a, const B& b) {
    detail::check_product<placement_of<A>, placement_of<B>>();
    constexpr Placement from = product(placement_of<A>, placement_of<B>);
    static_assert(!can_multiply(placement_of<A>, placement_of<B>) || is_partial(from),
                  "reigen: matmul_all_reduce(a, b): nothing splits a's columns and b's rows, so there is nothing to "
                  "sum; write matmul(a, b)");
    detail::require_factors(a.spec(), b.spec(), "matmul_all_reduce");
    detail::require_no_copies(a.col_partition(), "matmul_all_reduce", "");
    const ShardSpec whole = detail::product_spec(a, b);
    const Communicator& ranks = a.mesh()[from.partial];
    if (ranks.size() == 1 || detail::pieces_to_sum(whole.local_rows()) == 1)
        return redistribute<summed(from)>(matmul(a, b));
    using S = ScalarOf<A>;
    detail::agree_on_product("matmul_all_reduce", ranks, a.spec(), b.spec());
    Sharded<S, summed(from)> c(ShardSpec(a.mesh(), summed(from), whole.row_partition, whole.col_partition));
    const MemoryScope scope(MemoryUse::messages);
    detail::multiply_and_sum_rows<S, Stored<S, from>>(ranks, a.strided(), detail::packed_factor(b), c.strided());
    return c;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
