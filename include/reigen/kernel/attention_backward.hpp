#pragma once

#include <reigen/core/buffer.hpp>
#include <reigen/core/poll.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/kernel/attention_gradient_tile.hpp>
#include <reigen/kernel/key_chunks.hpp>
#include <reigen/kernel/parallel.hpp>
#include <reigen/kernel/score_rule.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <numbers>
#include <thread>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What the backward of attention knows of its queries: their output, lse and gradients, all as views that must outlive
/// it. lse and dlse are [batch * tokens, heads]; a dlse without data is 0.
template <class S>
struct AttentionOutputs {
    HeadsView<const S> queries;
    HeadsView<const S> out;
    HeadsView<const S> dout;
    Strided<const Accumulator<S>> lse;
    Strided<const Accumulator<S>> dlse = {};
};

/// Gradients of attention, one block of keys and values at a time, in a single pass over the scores: the gradients of a
/// block go where its caller wants them, those of the queries stay here until `finish`. Those of keys and values are in
/// the accumulator type, since they are sums over blocks of queries too. Where bfloat16 is multiplied in pairs or tiles,
/// weights and gradients of scores are rounded to bfloat16 before they multiply, and subnormal numbers count as 0.
///
/// Cost        absorb: 4 d + 2 d + 4 dv flops for each query and key of a tile that is not empty (d head_dim, dv that
///             of the values), one exponential a score, a copy of each key and value; no allocation
/// Order       fixed by the shapes, the blocks in their order and the mask; not by how many threads share the work where
///             it is compiled for OpenMP
/// Source      Dao, "FlashAttention-2", arXiv:2307.08691, section 3.1, on transposed scores
template <class S>
class AttentionGradient {
    using T = Accumulator<S>;
    using M = detail::Multiplicand<S>;

  public:
    AttentionGradient(const AttentionOutputs<S>& outputs, const Runs& positions, Index key_heads,
                      const ScoreRule& rule);

    /// Adds the gradients of a block of keys and values to dk and dv. Polls between panels.
    void absorb(HeadsView<const S> k, HeadsView<const S> v, const Runs& positions, HeadsView<T> dk, HeadsView<T> dv);

    /// The same for some heads of the block alone, which the views are of, from `first_head` on: a block may be absorbed
    /// heads after heads, in the same bits.
    void absorb_heads(Index first_head, HeadsView<const S> k, HeadsView<const S> v, const Runs& positions,
                      HeadsView<T> dk, HeadsView<T> dv);

    /// The same of a block of bfloat16, which is widened as it is copied.
    template <std::same_as<bfloat16> Narrow>
        requires(!std::is_same_v<S, bfloat16>)
    void absorb_heads(Index first_head, HeadsView<const Narrow> k, HeadsView<const Narrow> v, const Runs& positions,
                      HeadsView<T> dk, HeadsView<T> dv) {
        absorb_block(first_head, k, v, positions, dk, dv);
    }

    /// Writes the gradients of the queries.
    void finish(HeadsView<S> dq) const;

  private:
    static constexpr Index panel_rows = detail::panel_rows<T>;

    /// Kept for each panel, one number a row but for the gradients, [head_dim][panel_rows].
    struct PanelGradient {
        T* lse;   // as an exponent of two; +infinity for a row that saw nothing, whose weights are then 0
        T* shift; // ln 2 (D - dlse)
        T* dqueries;
    };

    /// Memory in which one panel meets one chunk, or one of its tiles.
    struct Scratch {
        T *weights, *mask;
        detail::WeightFactor<M> p_factor, ds_factor;
        detail::PanelRows<M> queries, dout;
        detail::ChunkMemory<M> chunk;
        T *dk, *dv; // of the chunk, [keys][width]
        Index size;
    };

    Index head_dim() const { return rows_.view.head_dim; }
    Index value_dim() const { return given_.out.head_dim; }
    Index key_width() const { return detail::padded<T>(head_dim()); }
    Index value_width() const { return detail::padded<T>(value_dim()); }
    Index chunk_keys() const {
        using Copies = detail::FactorMemory<M>;
        const Index copies =
            Copies::size_of_two(head_dim(), products_of_k) + Copies::size_of_two(value_dim(), products_of_v);
        return detail::chunk_keys<M>(copies / 2 + key_width() + value_width());
    }
    Index panel_size() const { return panel_rows * (head_dim() + 2); }
    static constexpr detail::Products products_of_k = {true, true}, products_of_v = {.over_features = true};

    PanelGradient state(Index panel) const {
        T* const at = const_cast<T*>(panels_.data()) + panel * panel_size();
        return {at, at + panel_rows, at + 2 * panel_rows};
    }

    /// Cuts the scratch memory; with a null pointer only its size means anything.
    Scratch place_scratch(T* memory) const {
        detail::MemoryCutter<T> cutter(memory);
        const auto take = [&](Index count) { return reinterpret_cast<M*>(cutter.take(count)); };
        const auto panel = [&](Index width) {
            M* const rows = take(panel_rows * width);
            return detail::PanelRows<M>{rows, take(panel_rows * width), true};
        };
        const Index tile = detail::tile_keys * panel_rows;
        T* const weights = cutter.take(tile);
        T* const mask = cutter.take(detail::TileMask<T>::size);
        detail::WeightFactor<M> p_factor = {reinterpret_cast<M*>(weights), nullptr};
        M* const dscores = take(tile);
        detail::WeightFactor<M> ds_factor = {dscores, dscores};
        if constexpr (detail::k_in<M> > 1) {
            p_factor.over_rows = take(detail::tile_keys * detail::weight_steps<M>);
            ds_factor.over_rows = take(detail::tile_keys * detail::weight_steps<M>);
        }
        const detail::PanelRows<M> queries = panel(key_width());
        const detail::PanelRows<M> dout = panel(value_width());
        const detail::ChunkMemory<M> chunk(cutter, chunk_keys(), head_dim(), products_of_k, value_dim(), products_of_v);
        T* const dk = cutter.take(chunk_keys() * key_width());
        T* const dv = cutter.take(chunk_keys() * value_width());
        return {weights, mask, p_factor, ds_factor, queries, dout, chunk, dk, dv, cutter.used()};
    }

    /// The memory of one of the threads that share the work.
    Scratch scratch_of(Index thread) const {
        return place_scratch(const_cast<T*>(scratch_.data()) + thread * scratch_size());
    }
    Index scratch_size() const { return detail::padded_to_lines<T>(place_scratch(nullptr).size); }

    /// How many threads share the work on so many heads with so many keys, of those that have memory for it.
    Index threads(Index heads, Index keys) const {
        const double pairs = double(heads) * double(grid_.rows) * double(keys);
        return std::min(detail::threads_for<T>(pairs * double(3 * head_dim() + 2 * value_dim())),
                        scratch_.size() / scratch_size());
    }

    template <class Stored>
    void absorb_block(Index first_head, HeadsView<const Stored> k, HeadsView<const Stored> v, const Runs& positions,
                      HeadsView<T> dk, HeadsView<T> dv);

    // Several chunks of a head may be worked on at once, one after the other on each panel: its gradients are sums over
    // the chunks in their order.
    void wait_for_chunks(Index panel, Index count) {
        const std::atomic_ref<Index> absorbed(absorbed_.data()[panel]);
        while (absorbed.load(std::memory_order_acquire) < count) {
            poll();
            std::this_thread::yield();
        }
    }
    void count_chunk(Index panel) {
        std::atomic_ref<Index>(absorbed_.data()[panel]).fetch_add(1, std::memory_order_release);
    }

    void check(const Runs& positions) const {
        const auto alike = [&](const auto& view) {
            return view.batch == given_.queries.batch && view.tokens == given_.queries.tokens &&
                   view.heads == given_.queries.heads;
        };
        require<ShapeError>(alike(given_.out) && alike(given_.dout) && given_.out.head_dim == given_.dout.head_dim,
                            "attention backward: queries, out and dout differ in batch, tokens, heads or head_dim");
        const Index tokens = given_.queries.batch * given_.queries.tokens;
        require<ShapeError>(given_.lse.rows == tokens && given_.lse.cols == given_.queries.heads,
                            "attention backward: lse is ", shape(given_.lse.rows, given_.lse.cols), ", want ",
                            shape(tokens, given_.queries.heads));
        require<ShapeError>(given_.dlse.data == nullptr ||
                                (given_.dlse.rows == tokens && given_.dlse.cols == given_.queries.heads),
                            "attention backward: dlse is ", shape(given_.dlse.rows, given_.dlse.cols), ", want ",
                            shape(tokens, given_.queries.heads));
        require<ShapeError>(positions.size() == given_.queries.tokens, "attention backward: ", positions.size(),
                            " positions for ", given_.queries.tokens, " queries");
    }

    /// D = dO . O and lse of every row, in the form in which the tiles use them.
    void prepare(Index b, Index h, Index panel) {
        const PanelGradient gradient = state(grid_.index(b, h, panel));
        std::fill_n(gradient.dqueries, panel_rows * head_dim(), T(0));
        std::fill_n(gradient.lse, panel_rows, -detail::minus_infinity<T>);
        std::fill_n(gradient.shift, panel_rows, T(0));
        const detail::SharedRows<const S> out = {given_.out, rows_.group}, dout = {given_.dout, rows_.group};
        for (Index i = 0; i < grid_.rows_of(panel); ++i) {
            const Index row = panel * panel_rows + i;
            const Index token = b * given_.queries.tokens + rows_.token(row);
            const Index head = rows_.head(h, row);
            const T lse = given_.lse(token, head);
            const T dlse = given_.dlse.data == nullptr ? T(0) : given_.dlse(token, head);
            if (lse != detail::minus_infinity<T>)
                gradient.lse[i] = T(double(lse) * std::numbers::log2e);
            gradient.shift[i] =
                T(std::numbers::ln2) * (detail::dot<T>(out.row(b, h, row), dout.row(b, h, row), value_dim()) - dlse);
        }
    }

    void absorb_chunk(Index panel, const detail::KeyChunk<M>& chunk, Scratch scratch) {
        const detail::PanelSight<panel_rows> sight(
            rule_.mask, grid_.rows_of(panel), [&](Index i) { return aligned_[rows_.token(panel * panel_rows + i)]; });
        if (sight.cover(chunk.range) == Coverage::empty)
            return;
        const detail::ProductRegisters<M> registers;
        pack_panel(chunk.b, chunk.h, panel, scratch);
        const PanelGradient gradient = state(grid_.index(chunk.b, chunk.h, panel));
        detail::for_each_seen_tile(chunk, sight, scratch.mask,
                                   [&](Index first, const detail::KeyTile<M>& tile, const T* seen) {
                                       Scratch here = scratch;
                                       here.dk += first * key_width();
                                       here.dv += first * value_width();
                                       absorb_tile(grid_.rows_of(panel), gradient, tile, seen, here);
                                   });
    }

    /// Q carries the scale to base two, the transposed dO ln 2: dS then carries ln 2, and the sum over queries the
    /// scale. Pairs carry nothing: what is summed is multiplied instead.
    void pack_panel(Index b, Index h, Index panel, Scratch& scratch) const {
        const Index rows = grid_.rows_of(panel);
        const Index first = panel * panel_rows;
        const detail::SharedRows<const S> dout = {given_.dout, rows_.group};
        const auto query_row = [&](Index i) { return rows_.row(b, h, first + i); };
        const auto dout_row = [&](Index i) { return dout.row(b, h, first + i); };
        detail::pack_rows<M>(rows, head_dim(), scale(), query_row, scratch.queries);
        detail::pack_transposed<M>(rows, head_dim(), scale(), query_row, scratch.queries.columns);
        detail::pack_rows<M>(rows, value_dim(), T(1), dout_row, scratch.dout);
        detail::pack_transposed<M>(rows, value_dim(), T(std::numbers::ln2), dout_row, scratch.dout.columns);
    }

    void absorb_tile(Index rows, const PanelGradient& panel, const detail::KeyTile<M>& tile, const T* seen,
                     const Scratch& scratch) {
        const Index keys = tile.keys;
        const auto seen_unless = [&](bool finite) { return finite ? nullptr : seen; };
        detail::weigh_tile<M>(detail::steps_in<M>(head_dim()), tile.k.over_features, keys, scratch.queries.columns,
                              scale(), panel.lse, scratch.weights);
        if (seen != nullptr)
            detail::hide_weights<T>(keys, seen, scratch.weights);
        detail::differentiate_tile<M>(detail::steps_in<M>(value_dim()), tile.v.over_features, keys,
                                      scratch.dout.columns, T(std::numbers::ln2), panel.shift, seen, scratch.weights,
                                      scratch.p_factor, scratch.ds_factor);
        if constexpr (detail::k_in<M> > 1)
            if (rows < panel_rows) {
                detail::clear_missing_rows(keys, rows, scratch.p_factor.over_rows);
                detail::clear_missing_rows(keys, rows, scratch.ds_factor.over_rows);
            }
        const bool keys_finite = seen == nullptr || detail::all_finite(keys, head_dim(), tile.k);
        detail::add_rows<M>(keys, rows, scratch.p_factor.over_rows, seen_unless(scratch.dout.finite), scratch.dout.rows,
                            scratch.dv, value_width());
        detail::add_rows<M>(keys, rows, scratch.ds_factor.over_rows, seen_unless(scratch.queries.finite),
                            scratch.queries.rows, scratch.dk, key_width());
        detail::gather_keys<M>(head_dim(), tile.k.over_keys, keys, scratch.ds_factor.over_keys,
                               seen_unless(keys_finite), panel.dqueries);
    }

    T scale() const { return T(rule_.scale_for_base_two()); }

    /// Adds the gradients of a chunk's keys or values, which `scale` multiplies, to those of the block.
    void add_to(HeadsView<T> block, Index h, const detail::KeyChunk<M>& chunk, const T* sums, Index width,
                T scale) const {
        for (Index k = 0; k < chunk.tile.keys; ++k, sums += width) {
            T* const to = block.at(chunk.b, chunk.first + k, h);
            for (Index c = 0; c < block.head_dim; ++c)
                to[c] += scale * sums[c];
        }
    }

    AttentionOutputs<S> given_;
    detail::SharedRows<const S> rows_;
    detail::PanelGrid<T> grid_;
    ScoreRule rule_;
    Buffer<T> panels_;
    Buffer<T> scratch_;
    Buffer<Index> aligned_;
    Buffer<Index> absorbed_; // for each panel, the chunks of the present block
};

// Defined outside the class, so that `extern template` keeps them from being compiled again.

template <class S>
AttentionGradient<S>::AttentionGradient(const AttentionOutputs<S>& outputs, const Runs& positions, Index key_heads,
                                        const ScoreRule& rule)
    : given_(outputs),
      rows_(detail::share_rows(outputs.queries, key_heads)),
      grid_{outputs.queries.batch, key_heads, rows_.count()},
      rule_(rule) {
    check(positions);
    const MemoryScope scope(MemoryUse::workspace);
    panels_ = Buffer<T>(grid_.count() * panel_size());
    scratch_ = Buffer<T>(scratch_size() * detail::thread_count());
    absorbed_ = Buffer<Index>(grid_.count());
    aligned_ = Buffer<Index>(outputs.queries.tokens);
    detail::align_positions(positions, rule.offset, aligned_.data());
    grid_.for_each([&](Index b, Index h, Index panel) { prepare(b, h, panel); });
}

template <class S>
void AttentionGradient<S>::absorb(HeadsView<const S> k, HeadsView<const S> v, const Runs& positions, HeadsView<T> dk,
                                  HeadsView<T> dv) {
    detail::check_keys(k, v, positions, grid_.batch, grid_.heads, head_dim(), value_dim());
    absorb_heads(0, k, v, positions, dk, dv);
}

template <class S>
void AttentionGradient<S>::absorb_heads(Index first_head, HeadsView<const S> k, HeadsView<const S> v,
                                        const Runs& positions, HeadsView<T> dk, HeadsView<T> dv) {
    absorb_block(first_head, k, v, positions, dk, dv);
}

template <class S>
template <class Stored>
void AttentionGradient<S>::absorb_block(Index first_head, HeadsView<const Stored> k, HeadsView<const Stored> v,
                                        const Runs& positions, HeadsView<T> dk, HeadsView<T> dv) {
    require<ShapeError>(first_head >= 0 && first_head + k.heads <= grid_.heads, "attention backward: key heads ",
                        first_head, " to ", first_head + k.heads - 1, " of ", grid_.heads);
    detail::check_keys(k, v, positions, grid_.batch, k.heads, head_dim(), value_dim());
    detail::check_keys<T>(dk, dv, positions, grid_.batch, k.heads, head_dim(), value_dim());
    const Index heads = grid_.batch * k.heads;
    if (heads == 0)
        return;
    std::fill_n(absorbed_.data(), grid_.count(), Index(0));
    const Index chunks = detail::chunks_in(k.tokens, scratch_of(0).chunk);
    detail::for_each_unit(threads(heads, k.tokens), heads * chunks, [&](Index thread, Index unit) {
        const Index b = unit % heads / k.heads, of_views = unit % heads % k.heads, h = first_head + of_views;
        const Scratch scratch = scratch_of(thread);
        auto chunk = detail::copy_chunk(k, v, b, of_views, unit / heads, positions, scratch.chunk);
        chunk.h = h;
        if constexpr (detail::in_tiles<M>)
            detail::clear_weights(scratch.p_factor, scratch.ds_factor);
        std::fill_n(scratch.dk, chunk.tile.keys * key_width(), T(0));
        std::fill_n(scratch.dv, chunk.tile.keys * value_width(), T(0));
        for (Index panel = 0; panel < grid_.panels(); ++panel) {
            wait_for_chunks(grid_.index(b, h, panel), unit / heads);
            absorb_chunk(panel, chunk, scratch);
            count_chunk(grid_.index(b, h, panel));
            poll();
        }
        add_to(dk, of_views, chunk, scratch.dk, key_width(), detail::scales_scores<M> ? scale() : T(1));
        add_to(dv, of_views, chunk, scratch.dv, value_width(), T(1));
    });
}

template <class S>
void AttentionGradient<S>::finish(HeadsView<S> dq) const {
    require<ShapeError>(dq.batch == given_.queries.batch && dq.tokens == given_.queries.tokens &&
                            dq.heads == given_.queries.heads && dq.head_dim == head_dim(),
                        "attention backward: dq is not of the queries' shape");
    const detail::SharedRows<S> to = {dq, rows_.group};
    const auto scale = detail::broadcast<T>(this->scale());
    grid_.for_each([&](Index b, Index h, Index panel) {
        detail::unpack_transposed<T>(
            grid_.rows_of(panel), head_dim(), state(grid_.index(b, h, panel)).dqueries,
            [&](Index, const detail::Packet<T>& sum) { return Eigen::internal::pmul(sum, scale); },
            [&](Index i) { return to.row(b, h, panel * panel_rows + i); });
    });
}

#ifdef REIGEN_KERNEL_INSTANTIATION
REIGEN_KERNEL_INSTANTIATION template class AttentionGradient<float>;
REIGEN_KERNEL_INSTANTIATION template class AttentionGradient<double>;
REIGEN_KERNEL_INSTANTIATION template class AttentionGradient<bfloat16>;
REIGEN_KERNEL_INSTANTIATION template void AttentionGradient<float>::absorb_block(Index, HeadsView<const bfloat16>,
                                                                                 HeadsView<const bfloat16>, const Runs&,
                                                                                 HeadsView<float>, HeadsView<float>);
REIGEN_KERNEL_INSTANTIATION template void AttentionGradient<double>::absorb_block(Index, HeadsView<const bfloat16>,
                                                                                  HeadsView<const bfloat16>,
                                                                                  const Runs&, HeadsView<double>,
                                                                                  HeadsView<double>);
#endif

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
