#pragma once

#include <reigen/kernel/bfloat16.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/row_blocks.hpp>

#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A product, and its left factor as it was gathered for it.
template <class S, Placement Product, Placement Gathered>
struct ProductOfGathered {
    Sharded<S, Product> product;
    Sharded<S, Gathered> gathered;
};

namespace detail {

template <Placement From, Placement To>
constexpr void check_gathered_rows() {
    static_assert(!is_partial(From), "reigen: all_gather_matmul<To>(x, w): x is a partial sum; sum it first: "
                                     "all_gather_matmul<To>(sum(x), w)");
    static_assert(
        is_partial(From) || (contains(From.rows, To.rows) && To.cols == From.cols && !is_partial(To)),
        "reigen: all_gather_matmul<To>(x, w): To is the placement of x with axes taken away from its rows; for "
        "anything else write matmul(redistribute<To>(x), w)");
}

/// Every rank's rows come to every rank: calls work(rank, rows of that rank), for this rank's own first, while the next
/// ones arrive.
///
///     step        0  1  2     at step s rank r works on the rows of (r - s) mod P,
///       rank 0    0  2  1     receives those of (r - s - 1) and sends its own to (r + s + 1)
///       rank 1    1  0  2
///       rank 2    2  1  0
///
/// One exchange at a time: P - 1 at once would share the wire, and all arrive at its end. Unlike in a ring nobody waits
/// for what a third rank has to pass on.
template <class T, class Work>
void gather_by_steps(const Communicator& ranks, Strided<const T> mine, const std::vector<Range>& blocks, Work work) {
    constexpr int tag = 8;
    const int size = ranks.size();
    const auto at = [&](int distance) { return (ranks.rank() + distance + size) % size; };
    const auto rows = [&](int rank) { return blocks[std::size_t(rank)].count; };
    Buffer<T> own(mine.size());
    for_block(mine, row_major(own.data(), mine.rows, mine.cols), AssignElement());
    Buffer<T> here, spare;
    Strided<const T> part = mine;
    for (int step = 0; step < size; ++step) {
        const bool last = step + 1 == size;
        const int next = at(-step - 1);
        Pending<T> arriving, leaving;
        if (!last && rows(next) * mine.cols > 0) {
            if (spare.size() != rows(next) * mine.cols)
                spare = Buffer<T>(rows(next) * mine.cols);
            arriving = ranks.start_receive(std::move(spare), next, tag);
        }
        if (!last && !mine.empty())
            // NOLINTNEXTLINE(bugprone-use-after-move): it comes back from `leaving` before the next step
            leaving = ranks.start_send(std::move(own), at(step + 1), tag);
        work(at(-step), part);
        if (leaving.valid())
            own = leaving.wait();
        spare = std::move(here);
        here = arriving.valid() ? arriving.wait() : Buffer<T>();
        part = row_major<const T>(here.data(), rows(next), mine.cols);
    }
}

/// Multiplies every rank's rows as taken(place among all rows, rows as they travelled) gives them.
template <Placement To, WireType Wire, ShardedLike X, IsPlaced W, class Taken>
auto multiply_by_steps(const X& x, const ShardSpec& whole, const std::vector<Range>& blocks, const W& w, Taken taken) {
    using S = ScalarOf<X>;
    using T = Accumulator<S>;
    using Travelling = OnWire<S, Wire>;
    const Communicator& ranks = x.mesh()[placement_of<X>.rows - To.rows];
    agree_on_product("all_gather_matmul", ranks, x.spec(), w.spec(), Wire);
    constexpr Placement product_placement = product(To, placement_of<W>);
    Sharded<S, product_placement> c(ShardSpec(x.mesh(), product_placement, whole.row_partition, w.col_partition()));
    const PackedWeight<S>& right = packed_factor(w);
    const MemoryScope scope(MemoryUse::messages);
    const auto mine = redistribution::converted<Travelling>(redistribution::part_of(x), x.spec());
    gather_by_steps<Travelling>(ranks, mine.view(), blocks, [&](int rank, Strided<const Travelling> part) {
        const Range& rows = blocks[std::size_t(rank)];
        gemm_many_rows(T(1), taken(rows, part), right, T(0), rows_of_block(c.strided(), rows));
    });
    return c;
}

/// Copies rows that travelled, widened again where they were rounded for it: 512x1024 floats in packets in 0.12 ms,
/// element by element in 0.40 ms.
template <class Travelling, class S>
void take_rows(Strided<const Travelling> rows, Strided<S> to) {
    if constexpr (std::is_same_v<Travelling, bfloat16> && std::is_same_v<S, float>)
        if (rows.is_contiguous() && to.is_contiguous())
            return widen_row(rows.data, to.data, to.size());
    for_block(rows, to, AssignElement());
}

/// Rows as they are multiplied: those that travelled, widened again where they were rounded for it.
template <class S, class Travelling>
Strided<const S> widened(Strided<const Travelling> rows, Buffer<S>& memory) {
    if constexpr (std::is_same_v<S, Travelling>) {
        return rows;
    } else {
        if (memory.size() < rows.size())
            memory = Buffer<S>(rows.size());
        const Strided<S> wide = row_major(memory.data(), rows.rows, rows.cols);
        take_rows(rows, wide);
        return wide;
    }
}

/// The gathered matrix, where nothing is gathered in steps.
template <Placement To, WireType Wire, ShardedLike X>
auto gathered_at_once(const X& x) {
    if constexpr (Wire == WireType::unchanged)
        return reigen::redistribute<To>(x);
    else
        return reigen::redistribute<To>(x, Wire);
}

/// What can be seen to be wrong, before any message; then the rows by which the product is cut.
template <Placement To, ShardedLike X, IsPlaced W>
std::vector<Range> gathered_blocks(const X& x, const ShardSpec& whole, const W& w) {
    static_assert(std::is_same_v<ScalarOf<X>, ScalarOf<W>>, "reigen: matmul multiplies matrices of one scalar type");
    require_factors(x.spec(), w.spec(), "all_gather_matmul");
    require_no_copies(x.col_partition(), "all_gather_matmul", "");
    return row_blocks(whole, x.spec(), placement_of<X>.rows - To.rows);
}

} // namespace detail

/// Plain matrices do not compile, as in `matmul`.
template <Placement To, WireType Wire = WireType::unchanged, class X, class W>
    requires detail::PartlySharded<X, W>
auto all_gather_matmul(const X&, const W&) {
    detail::refuse_plain_matrices<X, W>();
}

/// matmul(redistribute<To>(x), w), where `To` gathers rows of x, while they travel: the rows that have arrived are
/// multiplied as the next ones come.
///
///     auto y = all_gather_matmul<split_rows(dp | cp)>(x, w);    // x split over rows by dp|cp|tp, w over columns by tp
///
/// all_gather_matmul<To, WireType::bf16>(x, w) is matmul(redistribute<To>(x, WireType::bf16), w): rows of float or
/// double travel as bfloat16, at half or a quarter of the bytes, and every rank, their owner too, multiplies the same
/// rounded ones. That moves y by 2^-8 |x| |w| at most, |.| taken of each element and `WireType` read for those outside
/// bfloat16's range.
///
/// Shapes      x [m, k], w [k, n], global; w may be packed (`PackedShard`); the result is placed as product(To, W)
/// Cost        2 m n k flops over the local sizes; x as the all-gather sends it, (P - 1) m_r k elements in P - 1
///             messages; as memory three ranks' parts of it, and w packed. All that travels is hidden where a rank's n is
///             at least w F / (2 B): w bytes an element, F flops and B bytes a second. With fewer than 64 rows a rank, or
///             rows that do not lie rank after rank, as the two calls
/// Collective  over the axes that are gathered
/// Throws      as `matmul`, on every rank before any message
/// Order       bitwise as the two calls
/// Source      Wang et al., "Overlap communication with dependent computation via decomposition in large deep learning
///             models", ASPLOS 2023
template <Placement To, WireType Wire = WireType::unchanged, ShardedLike X, detail::IsPlaced W>
auto all_gather_matmul(const X& x, const W& w) {
    using S = ScalarOf<X>;
    detail::check_gathered_rows<placement_of<X>, To>();
    detail::check_product<To, placement_of<W>>();
    const ShardSpec whole = detail::redistribution::redistributed_spec(x, To);
    const std::vector<Range> blocks = detail::gathered_blocks<To>(x, whole, w);
    constexpr bool rounds = !std::is_same_v<S, detail::OnWire<S, Wire>>;
    if constexpr (placement_of<X>.rows == To.rows && !rounds) {
        return matmul(ShardedView<const S, To>(whole, x.strided()), w);
    } else {
        if (!blocks.empty())
            return detail::multiply_by_steps<To, Wire>(
                x, whole, blocks, w,
                [wide = Buffer<S>()](const Range&, auto part) mutable { return detail::widened<S>(part, wide); });
        if constexpr (!rounds)
            if (x.mesh().size(placement_of<X>.rows - To.rows) == 1)
                return matmul(ShardedView<const S, To>(whole, x.strided()), w);
        return matmul(detail::gathered_at_once<To, Wire>(x), w);
    }
}

/// The same where x is wanted whole afterwards too: `auto [y, all_x] = ...`.
///
/// Cost        as `all_gather_matmul`, and a copy of x
template <Placement To, WireType Wire = WireType::unchanged, ShardedLike X, detail::IsPlaced W>
auto all_gather_matmul_keeping(const X& x, const W& w) {
    using S = ScalarOf<X>;
    using Result = ProductOfGathered<S, product(To, placement_of<W>), To>;
    detail::check_gathered_rows<placement_of<X>, To>();
    detail::check_product<To, placement_of<W>>();
    const ShardSpec whole = detail::redistribution::redistributed_spec(x, To);
    const std::vector<Range> blocks = detail::gathered_blocks<To>(x, whole, w);
    if (blocks.empty()) {
        auto gathered = detail::gathered_at_once<To, Wire>(x);
        auto product = matmul(gathered, w);
        return Result{std::move(product), std::move(gathered)};
    }
    Sharded<S, To> gathered(whole);
    auto product = detail::multiply_by_steps<To, Wire>(x, whole, blocks, w, [&](const Range& rows, auto part) {
        const Strided<S> kept = detail::rows_of_block(gathered.strided(), rows);
        detail::take_rows(part, kept);
        return Strided<const S>(kept);
    });
    return Result{std::move(product), std::move(gathered)};
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
