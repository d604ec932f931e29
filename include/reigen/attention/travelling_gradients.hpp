#pragma once

#include <reigen/attention/ring_route.hpp>
#include <reigen/comm/communicator.hpp>
#include <reigen/core/buffer.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The gradients that go with blocks, or with some heads of them, on their way round: every rank that needs a block adds
/// what its queries give, and after the last such rank the sum jumps home. What a rank adds is worked out while the sum so
/// far is still arriving.
///
/// Cost        a message of the block's size from each rank between the first that needs the block and the last; four
///             buffers of that size
template <class A>
class TravellingGradients {
  public:
    /// `own_size`: elements of this rank's own block.
    TravellingGradients(const Communicator& ring, const RingRoute& route, Turn turn, Index own_size)
        : ring_(ring), route_(route), turn_(turn) {
        // From the start, so that no rank has to wait with a sum that could be at home.
        if (const int steps = route.steps(turn, ring.rank()); steps > 0)
            home_ = ring.start_receive(take(own_size), route.rank_at(turn, ring.rank(), steps), home_tag());
    }

    /// A block of `size` elements is here at this step: what others have added to it may come. `visit` is to follow.
    void expect(int owner, int step, Index size) {
        const int first = route_.first_needed(turn_, owner);
        if (first > 0 && step > first)
            arriving_ = ring_.start_receive(take(size), route_.rank_at(turn_, ring_.rank(), -1), travel_tag());
    }

    /// `add(gradients)` adds to zeros what this rank's queries give the block; it is called if they need it.
    template <class Add>
    void visit(int owner, int step, Index size, Add add) {
        const int rank = ring_.rank();
        const int first = route_.first_needed(turn_, owner);
        if (first == 0 || step < first)
            return; // nobody has added anything yet
        Buffer<A> sum;
        if (route_.needed(rank, owner)) {
            sum = take(size);
            std::fill(sum.begin(), sum.end(), A(0));
            add(sum.data());
        }
        if (arriving_.valid())
            sum = added(arriving_.wait(), std::move(sum));
        settle();
        const bool last = step == route_.steps(turn_, owner);
        leaving_ = ring_.start_send(std::move(sum), last ? owner : route_.rank_at(turn_, rank, 1),
                                    last ? home_tag() : travel_tag());
    }

    /// Waits for what the others have added for this rank's own block and hands it over, if it travelled.
    template <class Receive>
    void come_home(Receive receive) {
        if (home_.valid()) {
            const Buffer<A> sum = home_.wait();
            receive(sum.data());
        }
        settle();
    }

  private:
    // Apart from the tags of the blocks themselves, which are 0 and 1.
    int travel_tag() const { return 2 + int(turn_); }
    int home_tag() const { return 4 + int(turn_); }

    /// A buffer of this size, one that is done with if there is one.
    Buffer<A> take(Index size) {
        const auto found =
            std::find_if(spares_.begin(), spares_.end(), [&](auto& spare) { return spare.size() == size; });
        Buffer<A> buffer;
        if (found != spares_.end()) {
            buffer = std::move(*found);
            spares_.erase(found);
        } else {
            spares_.clear();
            const MemoryScope scope(MemoryUse::messages);
            buffer = Buffer<A>(size);
        }
        return buffer;
    }

    Buffer<A> added(Buffer<A> sum, Buffer<A> mine) {
        for (Index i = 0; i < mine.size(); ++i)
            sum[i] += mine[i];
        if (!mine.empty())
            spares_.push_back(std::move(mine));
        return sum;
    }

    /// Waits until the last sum has left.
    void settle() {
        if (leaving_.valid())
            spares_.push_back(leaving_.wait());
    }

    const Communicator& ring_;
    const RingRoute& route_;
    Turn turn_;
    Pending<A> home_;
    Pending<A> arriving_;
    Pending<A> leaving_;
    std::vector<Buffer<A>> spares_;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
