#pragma once

#include <reigen/kernel/attention_tile.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/memory_cutter.hpp>
#include <reigen/kernel/pack.hpp>
#include <reigen/kernel/prefetch.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Keys that stay in the second-level cache while every panel of queries goes over them: copied there, as they are
/// multiplied.
template <class M>
struct KeyChunk {
    Index b, h;      // sequence and key head
    Index first;     // key of the block with which it starts
    KeyTile<M> tile; // all its keys as one tile
    RunWalker positions;
    Interval range; // of the positions
};

/// Elements from one row of a factor to the next, an odd number of cache lines. Products of V^T and K^T go down a column
/// of up to 96 keys; with 512 or 1024 floats between them those fall on 2 or 1 of 64 sets of the first cache, and such
/// a product takes 1.2 to 1.4 times as long.
template <class M>
constexpr Index key_stride(Index features) {
    constexpr Index line = cache_line / Index(sizeof(M));
    return (((features + line - 1) / line) | 1) * line;
}

/// Keys in a chunk whose keys, values and perhaps gradients, `width` elements a key, take half a second-level cache:
/// processors with 16 registers have 512 KB of it where those with 32 have 1 MB or more.
template <class M>
constexpr Index chunk_keys(Index width) {
    constexpr Index bytes = Index(packet_registers) << 14;
    return std::max<Index>(1, bytes / (Index(sizeof(M)) * std::max<Index>(width, 1)) / tile_keys) * tile_keys;
}

/// The kinds of products that keys or values enter in a pass.
struct Products {
    bool over_features = false;
    bool over_keys = false;
};

/// Copies keys or values of one head to rows of steps along their features, `stride` apart, filled up with zeros to whole
/// packets.
template <class S, class M>
void copy_rows(HeadsView<const S> from, Index b, Index h, Index first, Index keys, M* to, Index stride) {
    const Index steps = steps_in<M>(from.head_dim);
    for (Index k = 0; k < keys; ++k) {
        M* const row = to + k * stride;
        pack_steps<M>(from.at(b, first + k, h), row, from.head_dim);
        std::fill(row + steps, row + padded<SumOf<M>>(steps), M{});
    }
}

/// Copies them to rows of steps along the keys, `stride` apart.
template <class S, class M>
void copy_steps(HeadsView<const S> from, Index b, Index h, Index first, Index keys, M* to, Index stride) {
    const Strided<const S> head = {from.at(b, first, h), keys, from.head_dim, from.token_stride, 1};
    constexpr Index L = lanes<SumOf<M>>;
    for (Index step = 0; step < steps_in<M>(keys); ++step, to += stride) {
        Index c = 0;
        for (; c + L <= head.cols; c += L)
            store_multiplicands<M>(to + c, load_step<M>(head, step, c));
        for (; c < head.cols; ++c)
            to[c] = multiplicand<M>(head, step, c);
    }
}

#if defined(REIGEN_AMX)
/// Copies them to rows of steps along the keys, one a feature, `stride` apart, filled up with zeros to a tile more than
/// whole tiles: products may begin anywhere.
inline void copy_columns(HeadsView<const bfloat16> from, Index b, Index h, Index first, Index keys, BFloat16Pair* to,
                         Index stride) {
    const Strided<const bfloat16> head = {from.at(b, first, h), keys, from.head_dim, from.token_stride, 1};
    const Index steps = steps_in<BFloat16Pair>(keys), end = whole_steps<BFloat16Pair>(steps) + amx_rows;
    const auto copy = [&](Index c, Index from_step) {
        for (Index step = from_step; step < steps; ++step)
            to[c * stride + step] = multiplicand<BFloat16Pair>(head, step, c);
    };
    const Index whole_keys = keys / amx_k * amx_k, whole_features = head.cols / amx_rows * amx_rows;
    for (Index key = 0; key < whole_keys; key += amx_k)
        for (Index c = 0; c < whole_features; c += amx_rows)
            transpose_to_tile(head.block(key, c, amx_k, amx_rows), to + c * stride + key / 2, stride);
    for (Index c = 0; c < head.cols; ++c) {
        copy(c, c < whole_features ? whole_keys / 2 : 0);
        std::fill(to + c * stride + steps, to + c * stride + end, BFloat16Pair{});
    }
}
#endif

/// Memory for the copy of the keys or values of a chunk. Numbers lie there once for both kinds of products.
template <class M>
class FactorMemory {
  public:
    FactorMemory(MemoryCutter<SumOf<M>>& cutter, Index keys, Index features, Products products)
        : step_stride_(in_tiles<M> ? key_stride<M>(steps_in<M>(keys) + 2 * more_in_tiles) : key_stride<M>(features)),
          rows_(take(cutter, needs_rows(products) ? (keys + more_in_tiles) * row_stride(features) : 0)),
          steps_(take(cutter, !needs_steps(products) ? 0
                              : in_tiles<M>          ? whole_steps<M>(features) * step_stride_
                                                     : steps_in<M>(keys) * step_stride_)),
          products_(products) {}

    /// Elements that two keys take.
    static constexpr Index size_of_two(Index features, Products products) {
        return (needs_rows(products) ? 2 * row_stride(features) : 0) +
               (needs_steps(products) ? (in_tiles<M> ? features : key_stride<M>(features)) : 0);
    }

    /// A copy of some keys or values of one head.
    template <class S>
    KeyFactor<M> copy(HeadsView<const S> from, Index b, Index h, Index first, Index keys) const {
        const Index row = row_stride(from.head_dim);
        if constexpr (k_in<M> == 1) {
            copy_rows(from, b, h, first, keys, rows_, row);
            return {{rows_, row, 1}, {rows_, 1, row}};
        } else {
            if (products_.over_features)
                copy_rows(from, b, h, first, keys, rows_, row);
            if constexpr (in_tiles<M>) {
                if (products_.over_keys)
                    copy_columns(from, b, h, first, keys, steps_, step_stride_);
                return {{rows_, row, 1}, {steps_, step_stride_, 1}};
            } else {
                if (products_.over_keys)
                    copy_steps(from, b, h, first, keys, steps_, step_stride_);
                return {{rows_, row, 1}, {steps_, 1, step_stride_}};
            }
        }
    }

  private:
    /// Rows or steps behind the last ones that tiles reach.
    static constexpr Index more_in_tiles = in_tiles<M> ? whole_steps<M>(1) : 0;

    static constexpr Index row_stride(Index features) { return key_stride<M>(steps_in<M>(features)); }
    static constexpr bool needs_rows(Products products) { return products.over_features || k_in<M> == 1; }
    static constexpr bool needs_steps(Products products) { return products.over_keys && k_in<M> > 1; }

    static M* take(MemoryCutter<SumOf<M>>& cutter, Index size) {
        static_assert(sizeof(M) == sizeof(SumOf<M>));
        return reinterpret_cast<M*>(cutter.take(size));
    }

    Index step_stride_;
    M* rows_;  // [keys][steps along features]
    M* steps_; // [steps along keys][features]; for tiles the other way round
    Products products_;
};

/// Memory for the copy of a chunk, and for how many keys.
template <class M>
struct ChunkMemory {
    Index keys;
    FactorMemory<M> k;
    FactorMemory<M> v;

    ChunkMemory(MemoryCutter<SumOf<M>>& cutter, Index keys_, Index head_dim, Products of_k, Index value_dim,
                Products of_v)
        : keys(keys_), k(cutter, keys, head_dim, of_k), v(cutter, keys, value_dim, of_v) {}

    /// The copy of some keys of one head and their values.
    template <class S>
    KeyTile<M> copy(HeadsView<const S> of_k, HeadsView<const S> of_v, Index b, Index h, Index first,
                    Index count) const {
        return {k.copy(of_k, b, h, first, count), v.copy(of_v, b, h, first, count), count};
    }
};

/// How many chunks so many keys are.
template <class M>
Index chunks_in(Index keys, const ChunkMemory<M>& memory) {
    return (keys + memory.keys - 1) / memory.keys;
}

/// A chunk of one head of a block of keys and values, by its number.
template <class S, class M>
KeyChunk<M> copy_chunk(HeadsView<const S> k, HeadsView<const S> v, Index b, Index h, Index number,
                       const Runs& positions, const ChunkMemory<M>& memory) {
    const Index first = number * memory.keys;
    const Index keys = std::min(memory.keys, k.tokens - first);
    RunWalker walker(positions);
    walker.next_range(first);
    const RunWalker start = walker;
    const Interval range = walker.next_range(keys);
    return {b, h, first, memory.copy(k, v, b, h, first, keys), start, range};
}

/// Calls visit(first key, tile, seen) for the tiles of a chunk of which a panel sees anything, cut down to the keys
/// that somebody sees. `seen` is null where all rows see all keys, else where the tile's part of the mask starts.
template <class M, class T, class Visit>
void for_each_seen_tile(const KeyChunk<M>& chunk, const PanelSight<panel_rows<T>>& sight, T* mask_memory, Visit visit) {
    TileMask<T> mask(mask_memory);
    RunWalker walker = chunk.positions;
    for (Index first = 0; first < chunk.tile.keys; first += tile_keys) {
        const Index keys = std::min(tile_keys, chunk.tile.keys - first);
        const RunWalker start = walker;
        Coverage coverage = sight.cover(walker.next_range(keys));
        if (coverage == Coverage::mixed)
            coverage = mask.look(sight, start, keys);
        if (coverage == Coverage::full)
            visit(first, chunk.tile.from_key(first, keys), static_cast<const T*>(nullptr));
        if (coverage == Coverage::mixed) {
            const Index unseen = mask.first_key() / k_in<M> * k_in<M>; // whole steps
            visit(first + unseen, chunk.tile.from_key(first + unseen, mask.end_key() - unseen), mask.key(unseen));
        }
    }
}

/// The key position on which every query stands: its own, moved by the offset.
inline void align_positions(const Runs& positions, Index offset, Index* aligned) {
    for (const Run& run : positions.pieces())
        for (Index i = 0; i < run.count; ++i)
            *aligned++ = run[i] + offset;
}

/// A block of keys and values fits together and to what the queries expect.
template <class S>
void check_keys(HeadsView<const S> k, HeadsView<const S> v, const Runs& positions, Index batch, Index heads,
                Index key_dim, Index value_dim) {
    require<ShapeError>(k.batch == batch && v.batch == batch, "attention: ", batch, " sequences of queries, ", k.batch,
                        " of keys, ", v.batch, " of values");
    require<ShapeError>(k.heads == heads && v.heads == heads, "attention: ", k.heads, " heads of keys and ", v.heads,
                        " of values, where the queries expect ", heads);
    require<ShapeError>(k.tokens == v.tokens && positions.size() == k.tokens, "attention: ", k.tokens, " keys, ",
                        v.tokens, " values, ", positions.size(), " positions");
    require<ShapeError>(k.head_dim == key_dim && v.head_dim == value_dim, "attention: head_dim ", k.head_dim,
                        " of keys and ", v.head_dim, " of values, where the queries expect ", key_dim, " and ",
                        value_dim);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
