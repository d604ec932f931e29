#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/core/poll.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/attention_decode.hpp>
#include <reigen/kernel/key_chunks.hpp>
#include <reigen/kernel/parallel.hpp>
#include <reigen/kernel/score_rule.hpp>

#include <cmath>
#include <concepts>
#include <optional>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What queries know after having seen some of the keys: for each query row the largest score, the sum of weights and
/// the weighted sum of values, in the accumulator type; S is that of queries, keys, values and output. Starts as the
/// identity and absorbs keys and values a block at a time: one block is dense attention, P blocks are a ring. Query
/// head h sees key head h / (query heads / key heads). Where bfloat16 is multiplied in pairs or tiles, weights
/// are rounded to bfloat16 before they multiply values, and subnormal numbers count as 0.
///
/// Cost        absorb: 2 (d + dv) flops for each query and key of a tile that is not empty, and a copy of each key and
///             value; where at most 8 query rows share a key head, one stream through keys and values. No allocation
/// Order       a row's bits depend on its own query, on the blocks in their order, each cut into tiles of 96 keys, and
///             on whether more than 8 query rows of the whole sequence share its key head; not on the other rows, nor on
///             how many threads share the work where it is compiled for OpenMP
/// Source      Milakov, Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867
template <class S>
class AttentionState {
    using T = Accumulator<S>;
    using M = detail::Multiplicand<S>;

  public:
    /// Takes a copy of the queries. `positions` are those of their tokens; `value_dim` is the head_dim of the values.
    /// Where the queries are a part of a sequence, `sequence_length` is that of all of it: every part of a long one is
    /// then computed in the same way, however few rows it has.
    AttentionState(HeadsView<const S> queries, const Runs& positions, Index key_heads, Index value_dim,
                   const ScoreRule& rule, std::optional<Index> sequence_length = {});

    /// Takes in a block of keys and values. Polls between panels, or tiles of keys.
    void absorb(HeadsView<const S> k, HeadsView<const S> v, const Runs& positions);

    /// The same of a block of bfloat16, which is widened as it is copied.
    template <std::same_as<bfloat16> Narrow>
        requires(!std::is_same_v<S, bfloat16>)
    void absorb(HeadsView<const Narrow> k, HeadsView<const Narrow> v, const Runs& positions) {
        absorb_block(k, v, positions);
    }

    /// Takes in what another state of the same queries has absorbed. The identity changes no bit.
    void merge(const AttentionState& other);

    /// out = weighted values / sum of weights; lse = natural logarithm of the sum of e^score, [batch * tokens, heads].
    /// 0 and -infinity for a row that saw nothing.
    void finish(HeadsView<S> out, Strided<T> lse) const;

  private:
    static constexpr Index panel_rows = detail::panel_rows<T>;

    /// Memory in which one panel meets one chunk, or one of its tiles.
    struct Scratch {
        T *scores, *mask;
        detail::ChunkMemory<M> chunk;
        detail::ChunkMemory<T> decoded_tile;
        detail::DecodedRows<T> decoded;
        Index size;
    };

    Index head_dim() const { return rows_.view.head_dim; }

    // A panel: its queries, transposed, as they are multiplied; then its state.
    Index query_size() const {
        return panel_rows * std::max(head_dim(), detail::whole_steps<M>(detail::steps_in<M>(head_dim())));
    }
    Index panel_size() const { return query_size() + panel_rows * (value_dim_ + 2); }
    T* queries(Index panel) const { return const_cast<T*>(panels_.data()) + panel * panel_size(); }
    M* multiplied_queries(Index panel) const { return reinterpret_cast<M*>(queries(panel)); }
    detail::PanelState<T> state(Index panel) const {
        T* const max = queries(panel) + query_size();
        return {max, max + panel_rows, max + 2 * panel_rows};
    }

    /// Cuts the scratch memory; with a null pointer only its size means anything.
    Scratch place_scratch(T* memory) const {
        detail::MemoryCutter<T> cutter(memory);
        T* const scores = cutter.take(detail::tile_keys * panel_rows);
        T* const mask = cutter.take(detail::TileMask<T>::size);
        using Copies = detail::FactorMemory<M>;
        const detail::Products of_k = {.over_features = true}, of_v = {.over_keys = true};
        const Index width = (Copies::size_of_two(head_dim(), of_k) + Copies::size_of_two(value_dim_, of_v)) / 2;
        const detail::ChunkMemory<M> chunk(cutter, decodes_ ? 0 : detail::chunk_keys<M>(width), head_dim(), of_k,
                                           value_dim_, of_v);
        const detail::ChunkMemory<T> decoded_tile(cutter, decodes_ ? detail::tile_keys : 0, head_dim(), of_k,
                                                  value_dim_, of_v);
        const detail::DecodedRows<T> decoded(cutter, decodes_ ? rows_.count() : 0, head_dim(), value_dim_);
        return {scores, mask, chunk, decoded_tile, decoded, cutter.used()};
    }

    /// The memory of one of the threads that share the work.
    Scratch scratch_of(Index thread) const {
        return place_scratch(const_cast<T*>(scratch_.data()) + thread * scratch_size());
    }
    Index scratch_size() const { return detail::padded_to_lines<T>(place_scratch(nullptr).size); }

    /// How many threads share the work on so many keys, of those that have memory for it. Where few rows are decoded, all
    /// the time goes into reading keys: as much of it as for many rows.
    Index threads(Index keys) const {
        const Index rows =
            grid_.batch * grid_.heads * std::max(grid_.rows, decodes_ ? detail::decoded_rows<T> : Index(0));
        const double work = double(rows) * double(keys) * double(head_dim() + value_dim_);
        return std::min(detail::threads_for<T>(work), scratch_.size() / scratch_size());
    }

    detail::PanelSight<panel_rows> sight(Index panel) const {
        return {mask_, grid_.rows_of(panel), [&](Index i) { return aligned_[rows_.token(panel * panel_rows + i)]; }};
    }

    void prepare(Index b, Index h, Index panel) {
        const Index index = grid_.index(b, h, panel);
        const auto row = [&](Index i) { return rows_.row(b, h, panel * panel_rows + i); };
        if (decodes_)
            detail::pack_transposed<T>(grid_.rows_of(panel), head_dim(), scale_, row, queries(index));
        else
            detail::pack_transposed<M>(grid_.rows_of(panel), head_dim(), scale_, row, multiplied_queries(index));
        const detail::PanelState<T> identity = state(index);
        std::fill_n(identity.max, panel_rows, detail::minus_infinity<T>);
        std::fill_n(identity.sum, panel_rows * (1 + value_dim_), T(0));
    }

    /// Every n-th panel of a head, so that under a mask too each share is as much work as any other.
    struct Share {
        Index first_panel, step;
    };

    /// Each share copies all keys: a head is one where that divides the work evenly, or nearly so.
    Index shares_of_head(Index threads) const {
        const Index heads = grid_.batch * grid_.heads;
        return heads % threads == 0 || heads >= 16 * threads ? 1 : std::min(threads, grid_.panels());
    }

    template <class Stored>
    void absorb_block(HeadsView<const Stored> k, HeadsView<const Stored> v, const Runs& positions);

    template <class Stored>
    void absorb_share(Index b, Index h, HeadsView<const Stored> k, HeadsView<const Stored> v, const Runs& positions,
                      Share share, const Scratch& scratch) {
        for (Index number = 0; number < detail::chunks_in(k.tokens, scratch.chunk); ++number) {
            const auto chunk = detail::copy_chunk(k, v, b, h, number, positions, scratch.chunk);
            for (Index panel = share.first_panel; panel < grid_.panels(); panel += share.step) {
                absorb_chunk(panel, chunk, scratch);
                poll();
            }
        }
    }

    void absorb_chunk(Index panel, const detail::KeyChunk<M>& chunk, const Scratch& scratch) {
        const detail::PanelSight<panel_rows> sight = this->sight(panel);
        if (sight.cover(chunk.range) == Coverage::empty)
            return;
        const detail::ProductRegisters<M> registers;
        const Index index = grid_.index(chunk.b, chunk.h, panel);
        detail::for_each_seen_tile(chunk, sight, scratch.mask,
                                   [&](Index, const detail::KeyTile<M>& tile, const T* seen) {
                                       absorb_tile(multiplied_queries(index), state(index), tile, seen, scratch.scores);
                                   });
    }

    void absorb_tile(const M* queries, detail::PanelState<T> state, const detail::KeyTile<M>& tile, const T* seen,
                     T* scores) {
        alignas(64) T largest[panel_rows];
        alignas(64) T decay[panel_rows];
        detail::score_tile<M>(detail::steps_in<M>(head_dim()), tile.k.over_features, tile.keys, queries, scale_, scores,
                              largest);
        if (seen != nullptr) {
            detail::hide_scores<T>(tile.keys, seen, scores, largest);
            if (detail::all_finite(tile.keys, value_dim_, tile.v))
                seen = nullptr;
        }
        detail::weigh_scores<M>(tile.keys, scores, largest, state, decay);
        detail::gather_values<M>(value_dim_, tile.v.over_keys, tile.keys, detail::weights_in<M>(scores), seen, decay,
                                 state.out);
    }

    /// Streams keys and values of one head past its few rows.
    template <class Stored>
    void decode_head(Index b, Index h, HeadsView<const Stored> k, HeadsView<const Stored> v,
                     detail::RunWalker positions, const Scratch& scratch) {
        const detail::PanelSight<panel_rows> sight = this->sight(0);
        const Index panel = grid_.index(b, h, 0);
        detail::TileMask<T> mask(scratch.mask);
        scratch.decoded.take_queries(queries(panel));
        scratch.decoded.take_state(state(panel));
        for (Index first = 0; first < k.tokens; first += detail::tile_keys) {
            const Index keys = std::min(detail::tile_keys, k.tokens - first);
            const detail::RunWalker start = positions;
            Coverage coverage = sight.cover(positions.next_range(keys));
            if (coverage == Coverage::mixed)
                coverage = mask.look(sight, start, keys);
            if (coverage != Coverage::empty)
                decode_tile(b, h, k, v, first, keys, coverage == Coverage::mixed ? mask.key(0) : nullptr, scratch);
            poll();
        }
        scratch.decoded.give_state(state(panel));
    }

    /// Keys and values where they lie, if their rows are whole packets of the type that is computed in; else a copy. So
    /// are those that are stored in a type of their own: to stream them too, a user's file would compile all this twice.
    template <class Stored>
    void decode_tile(Index b, Index h, HeadsView<const Stored> k, HeadsView<const Stored> v, Index first, Index keys,
                     const T* seen, const Scratch& scratch) const {
        if constexpr (std::is_same_v<Stored, S>)
            if (k.head_dim % detail::lanes<T> == 0 && v.head_dim % detail::lanes<T> == 0) {
                const detail::LeftPanel<S> here_k = {k.at(b, first, h), k.token_stride, 1};
                const detail::LeftPanel<S> here_v = {v.at(b, first, h), v.token_stride, 1};
                detail::decode_tile(scratch.decoded, detail::DecodedTile<S>{here_k, here_v, keys}, k.tokens - first,
                                    seen);
                return;
            }
        const detail::KeyTile<T> copy = scratch.decoded_tile.copy(k, v, b, h, first, keys);
        detail::decode_tile(scratch.decoded, detail::DecodedTile<T>{copy.k.over_features, copy.v.over_features, keys},
                            keys, seen);
    }

    void finish_panel(Index b, Index h, Index panel, const detail::SharedRows<S>& outputs, Strided<T> lse) const {
        const detail::PanelState<T> done = state(grid_.index(b, h, panel));
        const Index first = panel * panel_rows;
        const Index rows = grid_.rows_of(panel);
        detail::unpack_transposed<T>(
            rows, value_dim_, done.out,
            [&](Index p, const detail::Packet<T>& out) {
                const auto sum = detail::load<T>(done.sum + p * detail::lanes<T>);
                const auto nothing = detail::broadcast<T>(0);
                return detail::select_equal<T>(sum, nothing, nothing, Eigen::internal::pdiv(out, sum));
            },
            [&](Index i) { return outputs.row(b, h, first + i); });
        for (Index i = 0; i < rows; ++i)
            lse(b * outputs.view.tokens + outputs.token(first + i), outputs.head(h, first + i)) =
                detail::log_of_sum(done.max[i], done.sum[i]);
    }

    detail::SharedRows<const S> rows_;
    detail::PanelGrid<T> grid_;
    bool decodes_; // so few query rows share a key head that keys and values are streamed past them
    Index value_dim_;
    T scale_; // to base two
    Mask mask_;
    Buffer<T> panels_;
    Buffer<T> scratch_;
    Buffer<Index> aligned_;
};

// Defined outside the class, so that `extern template` keeps them from being compiled again.

template <class S>
AttentionState<S>::AttentionState(HeadsView<const S> queries, const Runs& positions, Index key_heads, Index value_dim,
                                  const ScoreRule& rule, std::optional<Index> sequence_length)
    : rows_(detail::share_rows(queries, key_heads)),
      grid_{queries.batch, key_heads, rows_.count()},
      decodes_(sequence_length.value_or(queries.tokens) * rows_.group <= detail::decoded_rows<T>),
      value_dim_(value_dim),
      scale_(T(rule.scale_for_base_two())),
      mask_(rule.mask) {
    require<ShapeError>(positions.size() == queries.tokens, "attention: ", positions.size(), " positions for ",
                        queries.tokens, " queries");
    require(sequence_length.value_or(queries.tokens) >= queries.tokens, "attention: ", queries.tokens,
            " queries of a sequence of ", sequence_length.value_or(0));
    const MemoryScope scope(MemoryUse::workspace);
    panels_ = Buffer<T>(grid_.count() * panel_size());
    scratch_ = Buffer<T>(scratch_size() * std::min(detail::thread_count(), std::max<Index>(grid_.count(), 1)));
    aligned_ = Buffer<Index>(queries.tokens);
    detail::align_positions(positions, rule.offset, aligned_.data());
    grid_.for_each([&](Index b, Index h, Index panel) { prepare(b, h, panel); });
}

template <class S>
void AttentionState<S>::absorb(HeadsView<const S> k, HeadsView<const S> v, const Runs& positions) {
    absorb_block(k, v, positions);
}

template <class S>
template <class Stored>
void AttentionState<S>::absorb_block(HeadsView<const Stored> k, HeadsView<const Stored> v, const Runs& positions) {
    detail::check_keys(k, v, positions, grid_.batch, grid_.heads, head_dim(), value_dim_);
    if (grid_.count() == 0)
        return;
    const Index threads = this->threads(k.tokens);
    const Index heads = grid_.batch * grid_.heads;
    const Index shares = decodes_ ? 1 : shares_of_head(threads);
    detail::for_each_unit(threads, heads * shares, [&](Index thread, Index unit) {
        const Index b = unit / shares / grid_.heads, h = unit / shares % grid_.heads;
        if (decodes_)
            decode_head(b, h, k, v, detail::RunWalker(positions), scratch_of(thread));
        else
            absorb_share(b, h, k, v, positions, {unit % shares, shares}, scratch_of(thread));
    });
}

template <class S>
void AttentionState<S>::merge(const AttentionState& other) {
    require<ShapeError>(grid_ == other.grid_ && value_dim_ == other.value_dim_ && head_dim() == other.head_dim(),
                        "attention: merged states belong to different queries");
    for (Index panel = 0; panel < grid_.count(); ++panel)
        detail::merge_panels(value_dim_, state(panel), other.state(panel));
}

template <class S>
void AttentionState<S>::finish(HeadsView<S> out, Strided<T> lse) const {
    require<ShapeError>(out.batch == grid_.batch && out.tokens == rows_.view.tokens && out.heads == rows_.view.heads &&
                            out.head_dim == value_dim_,
                        "attention: the output is not one vector of the values' head_dim for each query");
    require<ShapeError>(lse.rows == out.batch * out.tokens && lse.cols == out.heads, "attention: lse is ",
                        shape(lse.rows, lse.cols), ", want ", shape(out.batch * out.tokens, out.heads));
    const detail::SharedRows<S> outputs = {out, rows_.group};
    grid_.for_each([&](Index b, Index h, Index panel) { finish_panel(b, h, panel, outputs, lse); });
}

#ifdef REIGEN_KERNEL_INSTANTIATION
REIGEN_KERNEL_INSTANTIATION template class AttentionState<float>;
REIGEN_KERNEL_INSTANTIATION template class AttentionState<double>;
REIGEN_KERNEL_INSTANTIATION template class AttentionState<bfloat16>;
REIGEN_KERNEL_INSTANTIATION template void AttentionState<float>::absorb_block(HeadsView<const bfloat16>,
                                                                              HeadsView<const bfloat16>, const Runs&);
REIGEN_KERNEL_INSTANTIATION template void AttentionState<double>::absorb_block(HeadsView<const bfloat16>,
                                                                               HeadsView<const bfloat16>, const Runs&);
#endif

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
