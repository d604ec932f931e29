#pragma once

#include <reigen/core/runs.hpp>
#include <reigen/core/strided.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The indices that two `Runs` share, as local indices in either: piece p of `first` and piece p of `second` are the
/// same global indices, one by one.
///
/// Sender and receiver of a block compute the same pieces in the same order, so nothing but numbers travels.
struct Overlap {
    std::vector<Run> first;
    std::vector<Run> second;
    Index size = 0;

    bool empty() const { return size == 0; }

    void append(Run in_first, Run in_second) {
        size += in_first.count;
        if (in_first.count == 1)
            in_first.stride = in_second.stride = 1;
        if (!first.empty() && follows(first.back(), in_first) && follows(second.back(), in_second)) {
            first.back().count += in_first.count;
            second.back().count += in_second.count;
            return;
        }
        first.push_back(in_first);
        second.push_back(in_second);
    }

    /// The same with one of them replaced by places one after the other: how a message holds what comes from `first`,
    /// or what goes to `second`.
    Overlap packed() const {
        Overlap result;
        for (const Run& piece : first)
            result.append(piece, {result.size, 1, piece.count});
        return result;
    }

    Overlap unpacked() const {
        Overlap result;
        for (const Run& piece : second)
            result.append({result.size, 1, piece.count}, piece);
        return result;
    }

    Overlap swapped() const { return {second, first, size}; }

  private:
    static bool follows(const Run& before, const Run& next) {
        return before.stride == 1 && next.stride == 1 && next.start == before.start + before.count;
    }
};

namespace detail {

/// Common elements of two arithmetic progressions, as indices into each; count 0 where there are none.
inline Overlap overlap_of_pieces(const Run& a, const Run& b) {
    const Index low = std::max(a.start, b.start);
    const Index high = std::min(a.last(), b.last());
    if (low > high)
        return {};
    const Index step = std::lcm(a.stride, b.stride);
    Index i = (low - a.start + a.stride - 1) / a.stride;
    const Index tries = std::min(a.count, i + step / a.stride);
    while (i < tries && (a[i] - b.start) % b.stride != 0)
        ++i;
    if (i >= tries || a[i] > high)
        return {};
    const Index count = (high - a[i]) / step + 1;
    Overlap result;
    result.append({i, step / a.stride, count}, {(a[i] - b.start) / b.stride, step / b.stride, count});
    return result;
}

} // namespace detail

/// Where the indices that both hold lie in a and in b; the pieces come in the order of a's pieces, then of b's.
inline Overlap overlap(const Runs& a, const Runs& b) {
    Overlap result;
    if (a == b) {
        if (!a.empty())
            result.append({0, 1, a.size()}, {0, 1, a.size()});
        return result;
    }
    Index base_a = 0;
    for (const Run& piece_a : a.pieces()) {
        Index base_b = 0;
        for (const Run& piece_b : b.pieces()) {
            const Overlap common = detail::overlap_of_pieces(piece_a, piece_b);
            if (!common.empty()) {
                Run in_a = common.first.front();
                Run in_b = common.second.front();
                in_a.start += base_a;
                in_b.start += base_b;
                result.append(in_a, in_b);
            }
            base_b += piece_b.count;
        }
        base_a += piece_a.count;
    }
    return result;
}

/// What a holds and b does not, in a's order.
inline Runs without(const Runs& a, const Runs& b) {
    Runs rest;
    for (const Run& piece : a.pieces())
        for (Index i = 0; i < piece.count; ++i)
            if (!b.find(piece[i]))
                rest.append({piece[i], 1, 1});
    return rest;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
