#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/sizes.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The indices start, start + stride, ..., `count` of them. The stride is at least 1.
struct Run {
    Index start = 0;
    Index stride = 1;
    Index count = 0;

    Index operator[](Index i) const { return start + i * stride; }
    Index last() const { return (*this)[count - 1]; }
    bool operator==(const Run&) const = default;
};

/// Which global indices a rank holds along one axis, in the order in which it holds them.
///
/// Adjoining runs are joined: {0 1} {2 3} is {0 1 2 3}.
class Runs {
  public:
    Runs() = default;

    Runs(std::initializer_list<Run> pieces) {
        for (const Run& piece : pieces)
            append(piece);
    }

    /// first, first + 1, ..., `count` of them.
    static Runs range(Index first, Index count) { return {Run{first, 1, count}}; }

    void append(Run piece) {
        require(piece.count >= 0 && piece.stride >= 1 && piece.start >= 0, "Runs: start ", piece.start, ", stride ",
                piece.stride, ", count ", piece.count, ": want start and count >= 0 and stride >= 1");
        if (piece.count == 1)
            piece.stride = 1;
        const Index size = detail::sum_of_sizes(size_, piece.count, "Runs");
        if (piece.count > 0)
            detail::sum_of_sizes(piece.start, detail::product_of_sizes(piece.stride, piece.count - 1, "Runs"), "Runs");
        if (piece.count > 0 && !join(piece)) {
            offsets_.push_back(size_);
            pieces_.push_back(piece);
        }
        size_ = size;
    }

    void append(const Runs& other) {
        for (const Run& piece : other.pieces_)
            append(piece);
    }

    Index size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::span<const Run> pieces() const { return pieces_; }

    /// The global index at a local one.
    Index operator[](Index local) const {
        const auto next = std::upper_bound(offsets_.begin(), offsets_.end(), local);
        const auto piece = std::size_t(next - offsets_.begin()) - 1;
        return pieces_[piece][local - offsets_[piece]];
    }

    /// The local index at which a global one is held, if it is (the first, where it is held twice).
    std::optional<Index> find(Index global) const {
        for (std::size_t p = 0; p < pieces_.size(); ++p) {
            const Run& piece = pieces_[p];
            if (global >= piece.start && global <= piece.last() && (global - piece.start) % piece.stride == 0)
                return offsets_[p] + (global - piece.start) / piece.stride;
        }
        return std::nullopt;
    }

    /// Smallest and largest global index; only for runs that are not empty.
    Index smallest() const {
        return std::min_element(pieces_.begin(), pieces_.end(), [](auto& a, auto& b) { return a.start < b.start; })
            ->start;
    }
    Index largest() const {
        return std::max_element(pieces_.begin(), pieces_.end(), [](auto& a, auto& b) { return a.last() < b.last(); })
            ->last();
    }

    /// What lies at the local indices first, ..., first + count - 1.
    Runs slice(Index first, Index count) const {
        require<ShapeError>(first >= 0 && first <= size_ && count >= 0 && count <= size_ - first, "Runs: slice of ",
                            count, " from ", first, " out of ", size_);
        Runs result;
        for (std::size_t p = 0; p < pieces_.size(); ++p) {
            const Index begin = std::max(first, offsets_[p]);
            const Index end = std::min(first + count, offsets_[p] + pieces_[p].count);
            if (begin < end)
                result.append({pieces_[p][begin - offsets_[p]], pieces_[p].stride, end - begin});
        }
        return result;
    }

    /// The same runs with every index moved by `offset`.
    Runs shifted(Index offset) const {
        Runs result;
        for (const Run& piece : pieces_)
            result.append({piece.start + offset, piece.stride, piece.count});
        return result;
    }

    /// Whether both hold the same indices in the same order, however they are cut into runs.
    bool operator==(const Runs& other) const {
        if (size_ != other.size_)
            return false;
        if (pieces_ == other.pieces_)
            return true;
        for (Index i = 0; i < size_; ++i)
            if ((*this)[i] != other[i])
                return false;
        return true;
    }

    /// "0-1 6-7", "1-9/2", or "-" where empty.
    std::string to_string() const {
        std::string text;
        for (const Run& piece : pieces_) {
            text += concat(text.empty() ? "" : " ", piece.start);
            if (piece.count > 1)
                text += concat('-', piece.last());
            if (piece.stride > 1)
                text += concat('/', piece.stride);
        }
        return text.empty() ? "-" : text;
    }

  private:
    /// Lengthens the last run by the piece where the two are one run.
    bool join(const Run& piece) {
        if (pieces_.empty())
            return false;
        Run& back = pieces_.back();
        const Index step = piece.start - back.last();
        const Index stride = back.count > 1 ? back.stride : piece.count > 1 ? piece.stride : 1;
        const bool fits = step == stride && (piece.count == 1 || step == piece.stride);
        if (fits)
            back = {back.start, step, back.count + piece.count};
        return fits;
    }

    std::vector<Run> pieces_;
    std::vector<Index> offsets_; // local index at which each piece starts
    Index size_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
