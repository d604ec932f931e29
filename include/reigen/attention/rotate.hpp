#pragma once

#include <reigen/attention/ring_route.hpp>
#include <reigen/comm/communicator.hpp>
#include <reigen/comm/shown.hpp>
#include <reigen/core/buffer.hpp>
#include <reigen/core/buffer_source.hpp>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A block of some rank that visits this one.
template <class T>
struct Visit {
    int step;      // how far it has come; 0 is this rank's own
    int owner;     // the rank whose block it is
    const T* data; // null for this rank's own where that does not travel
};

/// What writes this rank's own block, and what is done with every block.
template <class T>
using Packing = std::function<void(std::span<T>)>;
template <class T>
using Working = std::function<void(const Visit<T>&)>;

/// Carries the blocks of all ranks round a ring, each as far as the route says: calls work(visit) for every block that
/// comes by, while it is already on its way to the next rank and the one after it is arriving. Knows nothing of what
/// the blocks are.
///
///     onward      step 0   1   2          a rank holds at most two blocks of others' or on their way: one that it
///       rank 0         0   2   1          works on and passes on, and one that arrives
///       rank 1         1   0   2
///       rank 2         2   1   0
///
/// `sizes[r]`: elements of rank r's block. `pack(span)` writes this rank's own; called only if it travels.
///
/// Cost        this rank sends each block that leaves it, sizes[owner] elements in one message
/// Collective  over the ring
template <class T>
void rotate(const Communicator& ring, const RingRoute& route, Turn turn, std::span<const Index> sizes,
            const Packing<T>& pack, const Working<T>& work) {
    const int rank = ring.rank();
    const int tag = int(turn);
    const int next = route.rank_at(turn, rank, 1);
    const int previous = route.block_at(turn, rank, 1);
    const auto size = [&](int block) { return sizes[std::size_t(block)]; };
    Buffer<T> here;
    Buffer<T> spare;
    if (route.steps(turn, rank) > 0) {
        here = Buffer<T>(size(rank));
        pack(here.span());
    }
    for (int step = 0; step <= route.steps(turn); ++step) {
        const int owner = route.block_at(turn, rank, step);
        const int coming = route.block_at(turn, rank, step + 1);
        const T* const data = here.data();
        Pending<T> arriving;
        if (route.steps(turn, coming) > step) {
            if (spare.size() != size(coming)) {
                spare = Buffer<T>(); // first, so that there are never three
                spare = Buffer<T>(size(coming));
            }
            arriving = ring.start_receive(std::move(spare), previous, tag);
        }
        Pending<T> leaving;
        if (route.steps(turn, owner) > step)
            leaving = ring.start_send(std::move(here), next, tag);
        if (route.steps(turn, owner) >= step)
            work(Visit<T>{step, owner, data});
        // NOLINTNEXTLINE(bugprone-use-after-move): it was moved only where it is on its way
        spare = leaving.valid() ? leaving.wait() : std::move(here);
        here = arriving.valid() ? arriving.wait() : Buffer<T>();
    }
}

/// The same visits, in the same order, of blocks that are read where they lie: nothing travels, and a rank holds no block
/// but its own. False, and no visit, where memory cannot be read so, or where a block is so short that it lies on the
/// heap.
///
/// Cost        what messages would carry is counted as sent
/// Collective  over the ring
template <class T>
bool look_round(const Communicator& ring, const RingRoute& route, Turn turn, std::span<const Index> sizes,
                const Packing<T>& pack, const Working<T>& work) {
    const auto is_long = [](Index size) {
        return size == 0 || std::size_t(size) * sizeof(T) >= BufferSource::least_bytes;
    };
    if (!ring.backend()->reads_in_place() || !std::ranges::all_of(sizes, is_long))
        return false;
    const int rank = ring.rank();
    Buffer<T> own;
    if (route.steps(turn, rank) > 0) {
        own = Buffer<T>(sizes[std::size_t(rank)]);
        pack(own.span());
    }
    const T* const mine = own.data();
    Shown<T> blocks(ring, std::move(own));
    if (!blocks.readable())
        return false;
    for (int step = 0; step <= route.steps(turn); ++step) {
        const int owner = route.block_at(turn, rank, step);
        if (route.steps(turn, owner) > step)
            ring.backend()->account({}, {1, sizes[std::size_t(owner)] * Index(sizeof(T))});
        if (route.steps(turn, owner) >= step)
            work(Visit<T>{step, owner, step == 0 ? mine : blocks.of(owner)});
    }
    blocks.close();
    return true;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
