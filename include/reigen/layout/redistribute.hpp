#pragma once

#include <reigen/core/wire_type.hpp>
#include <reigen/layout/redistribution_steps.hpp>
#include <reigen/layout/rules.hpp>
#include <reigen/layout/sharded.hpp>

#include <type_traits>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail::redistribution {

/// This rank's part of a sharded matrix: its memory, where it may be taken over, else a look at it.
template <ShardedLike X>
auto part_of(X&& x) {
    using Plain = std::remove_cvref_t<X>;
    using T = std::remove_const_t<typename Plain::Element>;
    if constexpr (!std::is_lvalue_reference_v<X> && requires { std::move(x).release(); }) {
        const ShardSpec spec = x.spec();
        return Part<T>(std::move(x).release(), spec);
    } else {
        return Part<T>(Strided<const T>(x.strided()));
    }
}

/// Rounds, or widens, to another type.
template <class To, class From>
Part<To> converted(Part<From> part, const ShardSpec& spec) {
    if constexpr (std::is_same_v<To, From>) {
        return part;
    } else {
        const Strided<const From> view = part.view();
        Buffer<To> buffer(view.size(), split_axes(spec.placement));
        for_block(view, row_major(buffer.data(), view.rows, view.cols), AssignElement());
        return {std::move(buffer), spec};
    }
}

template <ShardedLike X>
ShardSpec redistributed_spec(const X& x, Placement to, const Extent& rows, const Extent& cols) {
    const ShardSpec target(x.mesh(), to, rows, cols);
    require<ShapeError>(target.rows() == x.rows() && target.cols() == x.cols(), "redistribute: x is ",
                        shape(x.rows(), x.cols()), ", the new partitions are for ",
                        shape(target.rows(), target.cols()));
    return target;
}

template <ShardedLike X>
ShardSpec redistributed_spec(const X& x, Placement to) {
    const Placement from = placement_of<X>;
    return {x.mesh(), to, rearranged(x.row_partition(), x.mesh(), from.rows, to.rows),
            rearranged(x.col_partition(), x.mesh(), from.cols, to.cols)};
}

/// The steps of a redistribution, the first one that sends something under way: sums in the type In, then moves in Out.
template <class In, class Out>
class PendingSteps {
  public:
    PendingSteps(Part<In> part, const ShardSpec& from, const ShardSpec& to) {
        Plan plan = plan_redistribution(from, to);
        steps_ = std::move(plan.sums);
        if constexpr (std::is_same_v<In, Out>)
            steps_.insert(steps_.end(), plan.moves.begin(), plan.moves.end());
        else
            moves_ = std::move(plan.moves);
        rounded_ = steps_.empty() ? from : steps_.back().to;
        start(std::move(part));
    }

    bool done() { return !pending_.valid() || pending_.done(); }

    Part<Out> wait() {
        require(!std::exchange(waited_for_, true), "redistribute: its result was taken already; wait is called once");
        if (pending_.valid())
            part_ = finish<In>(steps_[next_++], pending_.wait());
        for (; next_ < steps_.size(); ++next_)
            part_ = run(steps_[next_], std::move(part_));
        return run(moves_, converted<Out>(std::move(part_), rounded_));
    }

  private:
    void start(Part<In> part) {
        for (; next_ < steps_.size() && !steps_[next_].communicates(); ++next_)
            part = run(steps_[next_], std::move(part));
        if (next_ < steps_.size())
            pending_ = redistribution::start(steps_[next_], std::move(part));
        else
            part_ = std::move(part);
    }

    ShardSpec rounded_;
    std::vector<Step> steps_;
    std::vector<Step> moves_;
    std::size_t next_ = 0;
    bool waited_for_ = false;
    Part<In> part_;
    Pending<In> pending_;
};

} // namespace detail::redistribution

/// A redistribution under way, which owns what it needs. `wait` gives the result, once.
template <class S, Placement From, Placement To, WireType Wire = WireType::unchanged>
class PendingRedistribution {
    template <Placement Where>
    using Travelling = detail::OnWire<Stored<S, Where>, Wire>;

  public:
    /// Started with this rank's part.
    PendingRedistribution(detail::redistribution::Part<Travelling<From>> part, const ShardSpec& from, ShardSpec to)
        : to_(std::move(to)), steps_(std::move(part), from, to_) {}

    /// Whether `wait` would not wait for the first message step.
    bool done() { return steps_.done(); }

    Sharded<S, To> wait() {
        Buffer<Stored<S, To>> elements = detail::redistribution::converted<Stored<S, To>>(steps_.wait(), to_).take(to_);
        return {std::move(to_), std::move(elements)};
    }

  private:
    ShardSpec to_;
    detail::redistribution::PendingSteps<Travelling<From>, Travelling<To>> steps_;
};

namespace detail::redistribution {

template <Placement To, ShardedLike X>
auto redistribute(X&& x, ShardSpec to) {
    using S = ScalarOf<X>;
    const Plan plan = plan_redistribution(x.spec(), to);
    const ShardSpec rounded = plan.sums.empty() ? x.spec() : plan.sums.back().to;
    auto sum = run(plan.sums, part_of(std::forward<X>(x)));
    auto result = run(plan.moves, converted<Stored<S, To>>(std::move(sum), rounded));
    Buffer<Stored<S, To>> elements = std::move(result).take(to);
    return Sharded<S, To>(std::move(to), std::move(elements));
}

template <Placement From, Placement To>
constexpr void check_wire() {
    static_assert(!is_partial(From) && !is_partial(To),
                  "reigen: redistribute: sums travel in their own type, since each summand would be rounded; leave the "
                  "wire's type out");
}

/// On a narrower wire everything goes through its type, what stays on its rank too.
template <Placement To, ShardedLike X>
auto redistribute(X&& x, ShardSpec to, WireType wire) {
    check_wire<placement_of<X>, To>();
    using S = ScalarOf<X>;
    using Narrow = OnWire<S, WireType::bf16>;
    if constexpr (!std::is_same_v<S, Narrow>)
        if (wire == WireType::bf16) {
            const ShardSpec from = x.spec();
            auto narrow = converted<Narrow>(part_of(std::forward<X>(x)), from);
            auto moved = run(plan_redistribution(from, to).moves, std::move(narrow));
            Buffer<S> elements = converted<S>(std::move(moved), to).take(to);
            return Sharded<S, To>(std::move(to), std::move(elements));
        }
    return redistribute<To>(std::forward<X>(x), std::move(to));
}

template <Placement To, WireType Wire, ShardedLike X>
auto start_redistribute(X&& x, ShardSpec to) {
    if constexpr (Wire != WireType::unchanged)
        check_wire<placement_of<X>, To>();
    const ShardSpec from = x.spec();
    using Held = std::remove_const_t<typename std::remove_cvref_t<X>::Element>;
    auto part = converted<OnWire<Held, Wire>>(part_of(std::forward<X>(x)), from);
    if constexpr (std::is_lvalue_reference_v<X>)
        part = Part(std::move(part).take(from), from);
    return PendingRedistribution<ScalarOf<X>, placement_of<X>, To, Wire>(std::move(part), from, std::move(to));
}

} // namespace detail::redistribution

/// The same global matrix in another placement: the one operation that moves matrices between ranks.
///
///     partial -> replicated   all-reduce          split -> replicated   all-gather      rows <-> cols   all-to-all
///     partial -> split        reduce-scatter      replicated -> split   local           split -> partial  local,
///     padded
///
/// Any of them over any axes at once, and a change of partitions under one placement too. Without extents, a side over
/// the same axes keeps its partition, added axes divide each rank's runs evenly, and removed axes leave each rank their
/// ranks' runs one after the other: an exact way back.
///
/// Shapes      x and the result are the same global [m, n]; the result has memory of its own, taken over from x where x
///             is given away (std::move) and its size does not change
/// Cost        as the collectives named above, inside the groups over the axes that change; packing where rows and
///             columns do not lie one after the other
/// Collective  over the group of the axes that change
/// Throws      ShapeError on every rank before any message where the extents are not those of x
/// Order       sums are taken in rank order of the joint group, first over the axes that are split afterwards, then over
///             the others; bit-identical on every rank. A partial of bfloat16 is summed in float and rounded once
template <Placement To, ShardedLike X>
auto redistribute(X&& x, const Extent& rows, const Extent& cols) {
    return detail::redistribution::redistribute<To>(std::forward<X>(x),
                                                    detail::redistribution::redistributed_spec(x, To, rows, cols));
}

template <Placement To, ShardedLike X>
auto redistribute(X&& x) {
    return detail::redistribution::redistribute<To>(std::forward<X>(x),
                                                    detail::redistribution::redistributed_spec(x, To));
}

/// `redistribute` of a matrix that is no sum, nor becomes one, with its elements in the wire's type on their way: the
/// result is that of an x which was rounded to it before, in every bit and on every rank, for any number of ranks.
/// Nothing is rounded where x is a partial sum, because every summand would be: that does not compile.
///
///     redistribute<residual_on_every_rank>(x, WireType::bf16)    // half of float's bytes
///
/// Shapes, Collective, Throws  as `redistribute`
/// Cost        as `redistribute`, in elements of the wire's type, of which it holds what it sends and receives
template <Placement To, ShardedLike X>
auto redistribute(X&& x, const Extent& rows, const Extent& cols, WireType wire) {
    return detail::redistribution::redistribute<To>(
        std::forward<X>(x), detail::redistribution::redistributed_spec(x, To, rows, cols), wire);
}

template <Placement To, ShardedLike X>
auto redistribute(X&& x, WireType wire) {
    return detail::redistribution::redistribute<To>(std::forward<X>(x),
                                                    detail::redistribution::redistributed_spec(x, To), wire);
}

/// `redistribute` that goes on while the caller computes, and ends at `wait`. Its first message step is started here;
/// others, which only mixed changes have, follow in `wait`. An x that is not given away is copied. On a narrower wire,
/// `start_redistribute<To, WireType::bf16>(x)`, the result is that of `redistribute` with it.
template <Placement To, WireType Wire = WireType::unchanged, ShardedLike X>
auto start_redistribute(X&& x, const Extent& rows, const Extent& cols) {
    return detail::redistribution::start_redistribute<To, Wire>(
        std::forward<X>(x), detail::redistribution::redistributed_spec(x, To, rows, cols));
}

template <Placement To, WireType Wire = WireType::unchanged, ShardedLike X>
auto start_redistribute(X&& x) {
    return detail::redistribution::start_redistribute<To, Wire>(std::forward<X>(x),
                                                                detail::redistribution::redistributed_spec(x, To));
}

/// The gradient with respect to x of `y = redistribute<...>(x)`, from the gradient dy with respect to y.
///
/// dy says by its placement what it is: replicated, where all ranks repeat the same work on y, or partial, where each
/// has its summand of it. So the adjoint of an all-gather is a slice or a reduce-scatter, that of an all-reduce the
/// identity or an all-reduce; that of a slice is an all-gather, or with `Gradient` partial a zero-padded summand.
/// In <A x, y> = <x, A* y> a partial is paired with a replicated, and replicas count once.
///
/// Shapes      X is the placement of x, the extents are its partitions; the result is placed as `Gradient`
template <Placement X, Placement Gradient = gradient_placement(X), ShardedLike Dy>
auto redistribute_adjoint(Dy&& dy, const Extent& rows, const Extent& cols) {
    static_assert(Gradient.rows == X.rows && Gradient.cols == X.cols && disjoint(Gradient.partial, X.partial),
                  "reigen: redistribute_adjoint: the gradient is split as x is; it may be partial only over axes over "
                  "which x is replicated");
    return redistribute<Gradient>(std::forward<Dy>(dy), rows, cols);
}

/// The sum that x is a summand of, on every rank of the axes it is partial over: `redistribute` with nothing else
/// changed.
template <ShardedLike X>
auto sum(X&& x) {
    static_assert(
        is_partial(placement_of<X>),
        "reigen: sum(x): x is not a partial sum, every rank of the axis would count it again; use x as it is");
    return redistribute<summed(placement_of<X>)>(std::forward<X>(x));
}

/// The whole matrix, on every rank.
template <ShardedLike X>
RowMatrix<ScalarOf<X>> to_dense(const X& x) {
    return redistribute<replicated>(x, x.rows(), x.cols()).local();
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
