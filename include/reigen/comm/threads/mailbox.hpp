#pragma once

#include <reigen/core/types.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// One message between two threads, made by whichever side comes first and completed by the other. No bytes are
/// stored: the receiver reads the sender's memory.
///
///     offered | awaited  -> matched -> reading -> taken       the receiver reads, then the sender may go on
///                        -> revoked                           either side gave up before the reading began
///                        -> mismatched                        the two sides have different sizes
struct Delivery {
    enum class State { offered, awaited, matched, reading, taken, revoked, mismatched };

    Delivery(int tag_, State first) : tag(tag_), state(first) {}

    bool swap_state(State from, State to) { return state.compare_exchange_strong(from, to, std::memory_order_acq_rel); }

    const int tag;
    const std::byte* data = nullptr; // these are written before the state becomes matched
    Index sent_bytes = 0;
    Index wanted_bytes = 0;
    std::atomic<State> state;
};

/// What travels from one rank to one other: deliveries that still lack their other side, in order.
class Mailbox {
  public:
    std::shared_ptr<Delivery> offer(const std::byte* data, Index bytes, int tag) {
        const std::lock_guard lock(mutex_);
        return join(tag, Delivery::State::offered, Delivery::State::awaited, [&](Delivery& delivery) {
            delivery.data = data;
            delivery.sent_bytes = bytes;
        });
    }

    std::shared_ptr<Delivery> await(Index bytes, int tag) {
        const std::lock_guard lock(mutex_);
        return join(tag, Delivery::State::awaited, Delivery::State::offered,
                    [&](Delivery& delivery) { delivery.wanted_bytes = bytes; });
    }

    /// Takes one side's part in a delivery back. Afterwards nobody reads its memory; waits only for a reading that has
    /// begun, which waits for nothing.
    void withdraw(const std::shared_ptr<Delivery>& delivery) noexcept {
        using State = Delivery::State;
        {
            const std::lock_guard lock(mutex_);
            if (std::erase(waiting_, delivery) > 0) {
                delivery->state.store(State::revoked, std::memory_order_release);
                return;
            }
        }
        if (delivery->swap_state(State::matched, State::revoked))
            return;
        while (delivery->state.load(std::memory_order_acquire) == State::reading)
            std::this_thread::yield();
    }

  private:
    /// Completes the first delivery of this tag that waits for this side, or has a new one wait for the other.
    template <class Fill>
    std::shared_ptr<Delivery> join(int tag, Delivery::State side, Delivery::State other_side, Fill fill) {
        const auto found = std::ranges::find_if(waiting_, [&](const auto& delivery) {
            return delivery->tag == tag && delivery->state.load(std::memory_order_relaxed) == other_side;
        });
        if (found == waiting_.end()) {
            auto delivery = std::make_shared<Delivery>(tag, side);
            fill(*delivery);
            waiting_.push_back(delivery);
            return delivery;
        }
        auto delivery = std::move(*found);
        waiting_.erase(found);
        fill(*delivery);
        const bool fits = delivery->sent_bytes == delivery->wanted_bytes;
        delivery->state.store(fits ? Delivery::State::matched : Delivery::State::mismatched, std::memory_order_release);
        return delivery;
    }

    std::mutex mutex_;
    std::deque<std::shared_ptr<Delivery>> waiting_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
