#pragma once

#include <reigen/kernel/attention_tile.hpp>

#include <algorithm>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Keys that stay in the second-level cache while every panel of queries goes over them.
template <class T>
struct KeyChunk {
    Index b, h;      // sequence and key head
    Index first;     // key of the block with which it starts
    KeyTile<T> tile; // all its keys as one tile
    RunWalker positions;
    Interval range; // of the positions
};

/// Keys in a chunk whose keys, values and perhaps gradients, `width` elements a key, take half a megabyte.
template <class T>
constexpr Index chunk_keys(Index width) {
    constexpr Index bytes = Index(1) << 19;
    return std::max<Index>(1, bytes / (Index(sizeof(T)) * std::max<Index>(width, 1)) / tile_keys) * tile_keys;
}

/// Calls visit(chunk) for all chunks of a block of keys and values.
template <class T, class Visit>
void for_each_chunk(HeadsView<const T> k, HeadsView<const T> v, const Runs& positions, Index size, Visit visit) {
    for (Index b = 0; b < k.batch; ++b)
        for (Index h = 0; h < k.heads; ++h) {
            RunWalker walker(positions);
            for (Index first = 0; first < k.tokens; first += size) {
                const Index keys = std::min(size, k.tokens - first);
                const RunWalker start = walker;
                const Interval range = walker.next_range(keys);
                visit(KeyChunk<T>{b, h, first, key_tile<T>(k, v, b, h, first, keys), start, range});
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
template <class T>
void check_keys(HeadsView<const T> k, HeadsView<const T> v, const Runs& positions, Index batch, Index heads,
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
