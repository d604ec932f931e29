#pragma once

#include <reigen/kernel/attention_tile.hpp>
#include <reigen/kernel/bfloat16.hpp>
#include <reigen/kernel/memory_cutter.hpp>
#include <reigen/kernel/prefetch.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Keys that stay in the second-level cache while every panel of queries goes over them: copied there, in the type that
/// is computed in.
template <class T>
struct KeyChunk {
    Index b, h;      // sequence and key head
    Index first;     // key of the block with which it starts
    KeyTile<T> tile; // all its keys as one tile
    RunWalker positions;
    Interval range; // of the positions
};

/// Elements from one key of a chunk to the next, an odd number of cache lines. Products of V^T and K^T go down a column
/// of up to 96 keys; with 512 or 1024 floats between them those fall on 2 or 1 of 64 sets of the first cache, and such
/// a product takes 1.2 to 1.4 times as long.
template <class T>
constexpr Index key_stride(Index features) {
    constexpr Index line = cache_line / Index(sizeof(T));
    return (((features + line - 1) / line) | 1) * line;
}

/// Keys in a chunk whose keys, values and perhaps gradients, `width` elements a key, take half a second-level cache:
/// processors with 16 registers have 512 KB of it where those with 32 have 1 MB or more.
template <class T>
constexpr Index chunk_keys(Index width) {
    constexpr Index bytes = Index(packet_registers) << 14;
    return std::max<Index>(1, bytes / (Index(sizeof(T)) * std::max<Index>(width, 1)) / tile_keys) * tile_keys;
}

/// Memory for the copy of a chunk, and for how many keys.
template <class T>
struct ChunkMemory {
    Index keys;
    T* k; // [keys][key_stride(head_dim)]
    T* v; // [keys][key_stride(head_dim of V)]

    ChunkMemory(MemoryCutter<T>& cutter, Index keys_, Index head_dim, Index value_dim)
        : keys(keys_),
          k(cutter.take(keys * key_stride<T>(head_dim))),
          v(cutter.take(keys * key_stride<T>(value_dim))) {}
};

/// Copies keys or values of one head to rows `key_stride` apart, filled up with zeros to whole packets.
template <class S, class T>
LeftPanel<T> copy_keys(HeadsView<const S> from, Index b, Index h, Index first, Index keys, T* to) {
    const Index stride = key_stride<T>(from.head_dim);
    for (Index k = 0; k < keys; ++k) {
        T* const row = to + k * stride;
        widen_row<T>(from.at(b, first + k, h), row, from.head_dim);
        std::fill(row + from.head_dim, row + padded<T>(from.head_dim), T(0));
    }
    return {to, stride, 1};
}

/// The copy of some keys of one head and their values.
template <class S, class T>
KeyTile<T> copy_tile(HeadsView<const S> k, HeadsView<const S> v, Index b, Index h, Index first, Index keys,
                     const ChunkMemory<T>& memory) {
    return {copy_keys(k, b, h, first, keys, memory.k), copy_keys(v, b, h, first, keys, memory.v), keys};
}

/// Calls visit(chunk) for all chunks of a block of keys and values.
///
/// Cost        copies each key and value once
template <class S, class T, class Visit>
void for_each_chunk(HeadsView<const S> k, HeadsView<const S> v, const Runs& positions, const ChunkMemory<T>& memory,
                    Visit visit) {
    for (Index b = 0; b < k.batch; ++b)
        for (Index h = 0; h < k.heads; ++h) {
            RunWalker walker(positions);
            for (Index first = 0; first < k.tokens; first += memory.keys) {
                const Index keys = std::min(memory.keys, k.tokens - first);
                const RunWalker start = walker;
                const Interval range = walker.next_range(keys);
                visit(KeyChunk<T>{b, h, first, copy_tile(k, v, b, h, first, keys, memory), start, range});
            }
        }
}

/// Calls visit(first key, tile, seen) for the tiles of a chunk of which a panel sees anything, cut down to the keys
/// that somebody sees. `seen` is null where all rows see all keys, else where the tile's part of the mask starts.
template <class T, class Visit>
void for_each_seen_tile(const KeyChunk<T>& chunk, const PanelSight<panel_rows<T>>& sight, T* mask_memory, Visit visit) {
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
            const Index begin = first + mask.first_key();
            visit(begin, chunk.tile.from_key(begin, mask.end_key() - mask.first_key()), mask.key(mask.first_key()));
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
