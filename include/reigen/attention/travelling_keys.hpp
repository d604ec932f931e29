#pragma once

#include <reigen/attention/heads.hpp>
#include <reigen/attention/rotate.hpp>
#include <reigen/core/buffer.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/score_rule.hpp>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// A block of keys and values as it travels, or of their gradients: all K, then all V, each [batch, heads, tokens,
/// dim], so that what one head needs lies together.
struct KeyBlockShape {
    Index batch = 0;
    Index heads = 0;
    Index head_dim = 0;
    Index value_dim = 0;

    Index size(Index tokens) const { return batch * tokens * heads * (head_dim + value_dim); }

    /// Of some of the heads.
    KeyBlockShape of_heads(Index count) const { return {batch, count, head_dim, value_dim}; }

    template <class T>
    HeadsView<T> keys(T* block, Index tokens) const {
        return {block, batch, tokens, heads, head_dim, heads * tokens * head_dim, head_dim, tokens * head_dim};
    }

    template <class T>
    HeadsView<T> values(T* block, Index tokens) const {
        T* const first = block + batch * tokens * heads * head_dim;
        return {first, batch, tokens, heads, value_dim, heads * tokens * value_dim, value_dim, tokens * value_dim};
    }
};

/// Calls visit(vector of the one, vector of the other) for two views of one shape.
template <class From, class To, class Visit>
void for_each_vector(HeadsView<From> from, HeadsView<To> to, Visit visit) {
    for (Index b = 0; b < from.batch; ++b)
        for (Index h = 0; h < from.heads; ++h)
            for (Index t = 0; t < from.tokens; ++t)
                visit(from.at(b, t, h), to.at(b, t, h));
}

/// A copy in the type in which it travels.
template <class T, class Wire>
void copy_heads(HeadsView<const T> from, HeadsView<Wire> to) {
    for_each_vector(from, to, [&](const T* source, Wire* target) {
        if constexpr (std::is_same_v<T, Wire>)
            std::copy_n(source, from.head_dim, target);
        else
            round_row(source, target, from.head_dim);
    });
}

template <class T>
void add_heads(HeadsView<const T> from, HeadsView<T> to) {
    for_each_vector(from, to, [&](const T* source, T* target) {
        for (Index c = 0; c < from.head_dim; ++c)
            target[c] += source[c];
    });
}

template <class T>
void zero_heads(HeadsView<T> heads) {
    for_each_vector(heads, heads, [&](T*, T* target) { std::fill_n(target, heads.head_dim, T(0)); });
}

/// Some of the heads.
template <class T>
HeadsView<T> heads_in(HeadsView<T> all, const Range& range) {
    all.data += range.first * all.head_stride;
    all.heads = range.count;
    return all;
}

/// A block of keys and values that this rank can read, its own or one that came by.
template <class Wire>
struct VisitingKeys {
    int step; // 0: its own
    int owner;
    HeadsView<const Wire> k;
    HeadsView<const Wire> v;
    const Runs& positions;
    bool needed; // whether this rank's queries see any of it
};

/// The keys and values of a ring: which rank has which, who needs them, and how they get there, in the type `Wire`.
template <class Wire, class S, Placement Where>
class TravellingKeys {
  public:
    TravellingKeys(const Heads<const S, Where>& q, const Heads<const S, Where>& k, const Heads<const S, Where>& v,
                   const ScoreRule& rule)
        : ring_(k.ring()),
          k_(k.view()),
          v_(v.view()),
          shape_{k_.batch, k_.heads, k_.head_dim, v_.head_dim},
          positions_(positions_of(k)),
          route_(ring_.size(), [&, queries = positions_of(q)](int rank, int block) {
              return k_.batch > 0 && may_see(rule.mask, queries[std::size_t(rank)], rule.offset, positions(block));
          }) {
        for (const Runs& held : positions_)
            sizes_.push_back(shape_.size(held.size()));
    }

    const Communicator& ring() const { return ring_; }
    const RingRoute& route() const { return route_; }
    const KeyBlockShape& shape() const { return shape_; }
    const Runs& positions(int rank) const { return positions_[std::size_t(rank)]; }

    /// Elements of the largest block.
    Index largest() const { return *std::max_element(sizes_.begin(), sizes_.end()); }

    /// Calls work(VisitingKeys) for each block that comes by (`rotate`) or can be read where it lies (`look_round`);
    /// onward, first for this rank's own, if its queries see any of it.
    template <class Work>
    void go_round(Turn turn, Work work) const {
        const MemoryScope scope(MemoryUse::keys_values);
        const auto pack = [&](std::span<Wire> block) { this->pack(block); };
        const auto visit = [&](const Visit<Wire>& block) {
            if (block.step > 0)
                work(visiting(block, block.data));
            else if (turn == Turn::onward)
                visit_own(block, work);
        };
        if (!look_round<Wire>(ring_, route_, turn, sizes_, pack, visit))
            rotate<Wire>(ring_, route_, turn, sizes_, pack, visit);
    }

  private:
    void pack(std::span<Wire> block) const {
        copy_heads(k_, shape_.keys(block.data(), k_.tokens));
        copy_heads(v_, shape_.values(block.data(), v_.tokens));
    }

    VisitingKeys<Wire> visiting(const Visit<Wire>& block, const Wire* data) const {
        const Runs& held = positions(block.owner);
        return {block.step,
                block.owner,
                shape_.keys(data, held.size()),
                shape_.values(data, held.size()),
                held,
                route_.needed(ring_.rank(), block.owner)};
    }

    /// In the type in which it is sent, or would be.
    template <class Work>
    void visit_own(const Visit<Wire>& block, Work& work) const {
        if (!route_.needed(block.owner, block.owner))
            return;
        if constexpr (std::is_same_v<Wire, S>) {
            work(VisitingKeys<Wire>{block.step, block.owner, k_, v_, positions(block.owner), true});
        } else if (block.data != nullptr) {
            work(visiting(block, block.data));
        } else {
            Buffer<Wire> packed(sizes_[std::size_t(block.owner)]);
            pack(packed.span());
            work(visiting(block, packed.data()));
        }
    }

    template <class Matrix>
    static std::vector<Runs> positions_of(const Matrix& heads) {
        std::vector<Runs> result;
        for (int rank = 0; rank < heads.ring().size(); ++rank)
            result.push_back(heads.positions(rank));
        return result;
    }

    Communicator ring_;
    HeadsView<const S> k_;
    HeadsView<const S> v_;
    KeyBlockShape shape_;
    std::vector<Runs> positions_;
    RingRoute route_;
    std::vector<Index> sizes_; // elements of each rank's block
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
