#pragma once

#include <reigen/core/poll.hpp>
#include <reigen/kernel/packet.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Lets messages move every so many multiply-adds of T: about every 80 us at the peak of an AVX-512 core of 3.4 GHz, 120
/// us on a slower one.
template <class T>
class PollClock {
  public:
    /// What fewer rows of a product count as, since reading the right factor from memory takes them as long; packing it
    /// counts as much.
    static constexpr Index fewest_rows = 32;

    void advance(Index multiply_adds) {
        done_ += multiply_adds;
        if (done_ < interval)
            return;
        done_ = 0;
        poll();
    }

  private:
    static constexpr Index interval = Index(lanes<T>) << 19;

    Index done_ = 0;
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
