#include "attention/ring_cases.hpp"

#include <reigen/attention/ring_route.hpp>
#include <reigen/kernel/key_chunks.hpp>

#include <numeric>

namespace ring_work_test {

using namespace ring_cases;

// How much of the scores each rank of a causal zigzag ring computes, counted as the kernels go through them: panel by
// panel, tile by tile.

namespace {

using T = float;

/// Scores of the tiles of one head that a rank's queries compute with a block of keys, and those that its mask leaves.
struct Scores {
    Index computed = 0;
    Index seen = 0;
};

Scores scores(const Runs& queries, const Runs& keys) {
    constexpr Index rows = detail::panel_rows<T>;
    Buffer<T> mask(detail::TileMask<T>::size);
    Scores result;
    const T number = 0; // stands for all keys and values
    const detail::KeyFactor<T> factor = {{&number, 0, 0}, {&number, 0, 0}};
    const detail::RunWalker start(keys);
    detail::RunWalker walker = start;
    const detail::KeyChunk<T> chunk = {0, 0, 0, {factor, factor, keys.size()}, start, walker.next_range(keys.size())};
    for (Index first = 0; first < queries.size(); first += rows) {
        const Index count = std::min(rows, queries.size() - first);
        const detail::PanelSight<rows> sight(Mask::causal(), count, [&](Index i) { return queries[first + i]; });
        detail::for_each_seen_tile(chunk, sight, mask.data(),
                                   [&](Index, const detail::KeyTile<T>& tile, const T* seen) {
                                       result.computed += count * tile.keys;
                                       for (Index k = 0; k < tile.keys; ++k)
                                           for (Index i = 0; i < count; ++i)
                                               result.seen += seen == nullptr || seen[k * rows + i] != T(0);
                                   });
    }
    return result;
}

/// Of a rank with the blocks that it needs, and of its own alone.
struct Work {
    Scores all, own;
};

Work work(SequenceLayout layout, Index length, int ranks, int rank) {
    const auto positions = [&](int r) { return sequence_runs(layout, length, ranks, r); };
    const RingRoute route(ranks,
                          [&](int r, int block) { return may_see(Mask::causal(), positions(r), 0, positions(block)); });
    Work result = {{}, scores(positions(rank), positions(rank))};
    for (int block = 0; block < ranks; ++block)
        if (route.needed(rank, block)) {
            const Scores more = scores(positions(rank), positions(block));
            result.all = {result.all.computed + more.computed, result.all.seen + more.seen};
        }
    return result;
}

} // namespace

// Chunks of whole panels and tiles: every rank sees 2 C^2 pairs of each other rank's and C (2 C + 1) of its own.
TEST(ring_work, of_a_causal_zigzag_ring_is_equal_on_all_ranks) {
    const Index chunk = 2 * std::lcm(Index(detail::panel_rows<T>), detail::tile_keys);
    for (int ranks = 2; ranks <= 8; ++ranks) {
        const Index length = 2 * ranks * chunk;
        const Work first = work(SequenceLayout::zigzag, length, ranks, 0);
        EXPECT_EQ(first.own.seen, chunk * (2 * chunk + 1));
        EXPECT_EQ(first.all.seen, (ranks - 1) * 2 * chunk * chunk + first.own.seen);
        EXPECT_GE(first.all.computed, first.all.seen);
        for (int rank = 1; rank < ranks; ++rank) {
            const Work other = work(SequenceLayout::zigzag, length, ranks, rank);
            EXPECT_EQ(other.all.computed, first.all.computed) << "rank " << rank << " of " << ranks;
            EXPECT_EQ(other.all.seen, first.all.seen) << "rank " << rank << " of " << ranks;
        }
    }
}

TEST(ring_work, of_any_equal_chunks_is_equal_in_what_is_seen) {
    for (const Index chunk : {1, 5, 37})
        for (int ranks = 2; ranks <= 8; ++ranks)
            for (int rank = 0; rank < ranks; ++rank)
                EXPECT_EQ(work(SequenceLayout::zigzag, 2 * ranks * chunk, ranks, rank).all.seen,
                          (ranks - 1) * 2 * chunk * chunk + chunk * (2 * chunk + 1));
}

TEST(ring_work, of_a_causal_contiguous_ring_is_not) {
    EXPECT_LT(2 * work(SequenceLayout::contiguous, 384, 4, 0).all.computed,
              work(SequenceLayout::contiguous, 384, 4, 3).all.computed);
}

} // namespace ring_work_test
