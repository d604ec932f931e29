#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/layout/block_copy.hpp>
#include <reigen/layout/redistribution_plan.hpp>

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail::redistribution {

/// A local part on its way: memory of its own, or a look at the caller's.
template <class T>
class Part {
  public:
    Part() = default;
    explicit Part(Strided<const T> borrowed) : view_(borrowed) {}
    Part(Buffer<T> buffer, const ShardSpec& spec)
        : buffer_(std::move(buffer)), view_(row_major<const T>(buffer_.data(), spec.local_rows(), spec.local_cols())) {}

    Strided<const T> view() const { return view_; }

    /// The elements, row after row: what it owns, or else a copy.
    Buffer<T> take(const ShardSpec& spec) && {
        if (buffer_.data() == view_.data && buffer_.size() == view_.size())
            return std::move(buffer_);
        Buffer<T> copy(view_.size(), split_axes(spec.placement));
        for_block(view_, row_major(copy.data(), view_.rows, view_.cols), AssignElement());
        return copy;
    }

  private:
    Buffer<T> buffer_;
    Strided<const T> view_;
};

template <class T>
Buffer<T> local_buffer(const ShardSpec& spec) {
    return Buffer<T>(spec.local_rows() * spec.local_cols(), split_axes(spec.placement));
}

template <class T>
Strided<T> local_view(Buffer<T>& buffer, const ShardSpec& spec) {
    return row_major(buffer.data(), spec.local_rows(), spec.local_cols());
}

/// Elements that each member of the group holds of `spec`.
inline std::vector<Index> member_sizes(const ShardSpec& spec, Axes group) {
    std::vector<Index> sizes;
    for (int q = 0; q < spec.mesh.size(group); ++q)
        sizes.push_back(spec.row_runs(group, q).size() * spec.col_runs(group, q).size());
    return sizes;
}

inline Index total(const std::vector<Index>& parts) {
    return std::accumulate(parts.begin(), parts.end(), Index(0));
}

/// Whether this rank's rows of `whole` are the members' rows of `cut`, one after the other, in the same columns: then
/// their memory is too, and nothing needs packing.
inline bool is_concatenation(const ShardSpec& whole, const ShardSpec& cut, Axes group) {
    if (whole.placement.cols != cut.placement.cols || !(whole.col_partition == cut.col_partition))
        return false;
    Runs rows;
    for (int q = 0; q < whole.mesh.size(group); ++q)
        rows.append(cut.row_runs(group, q));
    return rows == whole.row_runs();
}

// What of one side member `giver` supplies to `taker`. An item that several members hold comes from the taker itself
// where it can, else from the first. With taker = -1: what no member before the giver holds.
inline Overlap supplied(const Mesh& mesh, Axes group, Side from, const Runs& wanted, int giver, int taker) {
    const auto number = [&](int member) { return mesh.coordinate(from.axes, group, member); };
    const Runs& held = from.partition.runs(number(giver));
    if (!from.partition.overlaps())
        return overlap(held, wanted);
    const int own = taker < 0 ? -1 : number(taker);
    const auto comes_elsewhere = [&](Index item) {
        for (int member = 0; member < mesh.size(group); ++member)
            if (const int n = number(member); n == own || n < number(giver))
                if (from.partition.runs(n).find(item))
                    return true;
        return false;
    };
    Overlap result;
    for (Index i = 0; i < held.size(); ++i)
        if (const auto place = wanted.find(held[i]); place && (number(giver) == own || !comes_elsewhere(held[i])))
            result.append({i, 1, 1}, {*place, 1, 1});
    return result;
}

/// A block that goes from one member of the group to another.
struct Piece {
    Overlap rows;
    Overlap cols;
    Index size() const { return rows.size * cols.size; }
};

/// Among members that hold the same, each takes from the one that stands where it stands.
inline Piece piece(const Step& step, int giver, int taker) {
    const Mesh& mesh = step.mesh();
    const Axes copies = step.group - split_axes(step.from.placement);
    if (mesh.coordinate(copies, step.group, giver) != mesh.coordinate(copies, step.group, taker))
        return {};
    const auto side = [&](Side from, const Runs& wanted) {
        return supplied(mesh, step.group, from, wanted, giver, taker);
    };
    return {side(row_side(step.from), step.to.row_runs(step.group, taker)),
            side(col_side(step.from), step.to.col_runs(step.group, taker))};
}

template <class T>
Pending<T> start_reduce_scatter(const Step& step, Part<T> part) {
    const std::vector<Index> parts = member_sizes(step.to, step.group);
    Buffer<T> mine = local_buffer<T>(step.to);
    if (is_concatenation(step.from, step.to, step.group))
        return step.communicator().start_reduce_scatter(std::move(part).take(step.from), std::move(mine),
                                                        Reduction::sum, parts);
    const MemoryScope scope(MemoryUse::messages);
    Buffer<T> all(total(parts));
    T* next = all.data();
    for (int q = 0; q < step.ranks(); ++q) {
        const Runs& rows = step.to.row_runs(step.group, q);
        const Runs& cols = step.to.col_runs(step.group, q);
        copy_block(overlap(step.from.row_runs(), rows), overlap(step.from.col_runs(), cols), part.view(),
                   row_major(next, rows.size(), cols.size()));
        next += rows.size() * cols.size();
    }
    return step.communicator().start_reduce_scatter(std::move(all), std::move(mine), Reduction::sum, parts);
}

template <class T>
Pending<T> start_all_gather(const Step& step, Part<T> part) {
    const std::vector<Index> parts = member_sizes(step.from, step.group);
    const bool direct = is_concatenation(step.to, step.from, step.group);
    const MemoryScope scope(direct ? current_memory_use() : MemoryUse::messages);
    Buffer<T> all = direct ? local_buffer<T>(step.to) : Buffer<T>(total(parts));
    return step.communicator().start_all_gather(std::move(part).take(step.from), std::move(all), parts);
}

/// Gathers where the parts lie one after the other: this rank's is put in its place, and no buffer but the result is
/// needed.
template <class T>
Part<T> all_gather_in_place(const Step& step, const Part<T>& part) {
    const std::vector<Index> parts = member_sizes(step.from, step.group);
    Buffer<T> all = local_buffer<T>(step.to);
    T* const mine = all.data() + std::accumulate(parts.begin(), parts.begin() + step.rank(), Index(0));
    for_block(part.view(), row_major(mine, part.view().rows, part.view().cols), AssignElement());
    const std::span<const T> sent(mine, std::size_t(parts[std::size_t(step.rank())]));
    step.communicator().all_gather(sent, all.span(), parts);
    return {std::move(all), step.to};
}

template <class T>
Part<T> finish_all_gather(const Step& step, Buffer<T> all) {
    if (is_concatenation(step.to, step.from, step.group))
        return {std::move(all), step.to};
    Buffer<T> result = local_buffer<T>(step.to);
    const T* next = all.data();
    for (int q = 0; q < step.ranks(); ++q) {
        const Runs& rows = step.from.row_runs(step.group, q);
        const Runs& cols = step.from.col_runs(step.group, q);
        copy_block(overlap(rows, step.to.row_runs()), overlap(cols, step.to.col_runs()),
                   row_major(next, rows.size(), cols.size()), local_view(result, step.to));
        next += rows.size() * cols.size();
    }
    return {std::move(result), step.to};
}

template <class T>
Pending<T> start_exchange(const Step& step, const Part<T>& part) {
    std::vector<Piece> pieces;
    std::vector<Index> out_parts;
    std::vector<Index> in_parts;
    for (int q = 0; q < step.ranks(); ++q) {
        pieces.push_back(piece(step, step.rank(), q));
        out_parts.push_back(pieces.back().size());
        in_parts.push_back(q == step.rank() ? out_parts.back() : piece(step, q, step.rank()).size());
    }
    const MemoryScope scope(MemoryUse::messages);
    Buffer<T> out(total(out_parts));
    T* next = out.data();
    for (const Piece& p : pieces) {
        copy_block(p.rows.packed(), p.cols.packed(), part.view(), row_major(next, p.rows.size, p.cols.size));
        next += p.size();
    }
    Buffer<T> in(total(in_parts));
    return step.communicator().start_all_to_all(std::move(out), out_parts, std::move(in), in_parts);
}

template <class T>
Part<T> finish_exchange(const Step& step, Buffer<T> in) {
    Buffer<T> result = local_buffer<T>(step.to);
    const T* next = in.data();
    for (int q = 0; q < step.ranks(); ++q) {
        const Piece p = piece(step, q, step.rank());
        copy_block(p.rows.unpacked(), p.cols.unpacked(), row_major(next, p.rows.size, p.cols.size),
                   local_view(result, step.to));
        next += p.size();
    }
    return {std::move(result), step.to};
}

template <class T>
Part<T> move_locally(const Step& step, const Part<T>& part) {
    Buffer<T> result = local_buffer<T>(step.to);
    copy_block(overlap(step.from.row_runs(), step.to.row_runs()), overlap(step.from.col_runs(), step.to.col_runs()),
               part.view(), local_view(result, step.to));
    return {std::move(result), step.to};
}

/// Copies stay with the first of their ranks, shares with their (first) holder; zeros elsewhere.
template <class T>
Part<T> pad(const Step& step, const Part<T>& part) {
    const Mesh& mesh = step.mesh();
    Buffer<T> result = Buffer<T>::zeros(step.to.local_rows() * step.to.local_cols(), split_axes(step.to.placement));
    const Axes copies = step.group - split_axes(step.from.placement);
    if (mesh.rank(copies) == 0) {
        const auto side = [&](Side from, const Runs& wanted) {
            return supplied(mesh, step.group, from, wanted, step.rank(), -1);
        };
        copy_block(side(row_side(step.from), step.to.row_runs()), side(col_side(step.from), step.to.col_runs()),
                   part.view(), local_view(result, step.to));
    }
    return {std::move(result), step.to};
}

/// Has the ranks compare the whole matrices, where they compare: the messages alone would tell sizes of parts.
inline void agree(const Step& step) {
    step.communicator().agree("redistribute", [&] {
        return std::vector<Field>{{"shape", shape(step.from.rows(), step.from.cols())},
                                  {"from", to_string(step.from.placement)},
                                  {"to", to_string(step.to.placement)}};
    });
}

template <class T>
Pending<T> start(const Step& step, Part<T> part) {
    agree(step);
    switch (step.move) {
    case Move::all_reduce:
        return step.communicator().start_all_reduce(std::move(part).take(step.from));
    case Move::reduce_scatter:
        return start_reduce_scatter(step, std::move(part));
    case Move::all_gather:
        return start_all_gather(step, std::move(part));
    default:
        return start_exchange(step, part);
    }
}

template <class T>
Part<T> finish(const Step& step, Buffer<T> received) {
    switch (step.move) {
    case Move::all_gather:
        return finish_all_gather(step, std::move(received));
    case Move::exchange:
        return finish_exchange(step, std::move(received));
    default:
        return {std::move(received), step.to};
    }
}

template <class T>
Part<T> run(const Step& step, Part<T> part) {
    if (step.move == Move::local)
        return move_locally(step, part);
    if (step.move == Move::pad)
        return pad(step, part);
    if (step.move == Move::all_gather && is_concatenation(step.to, step.from, step.group)) {
        agree(step);
        return all_gather_in_place(step, part);
    }
    return finish(step, start(step, std::move(part)).wait());
}

template <class T>
Part<T> run(const std::vector<Step>& steps, Part<T> part) {
    for (const Step& step : steps)
        part = run(step, std::move(part));
    return part;
}

} // namespace detail::redistribution
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
