#pragma once

#include "support/median.hpp"
#include "support/peak.hpp"
#include "support/stopwatch.hpp"

#include <reigen/core/buffer.hpp>
#include <reigen/core/types.hpp>
#include <reigen/kernel/packet.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace bench {

/// Bytes of the largest cache of this machine; 32 MiB where it does not tell.
inline reigen::Index largest_cache() {
    reigen::Index largest = 0;
    for (const benchmark::CPUInfo::CacheInfo& cache : benchmark::CPUInfo::Get().caches)
        largest = std::max<reigen::Index>(largest, cache.size);
    return largest > 0 ? largest : reigen::Index(32) << 20;
}

/// Reads `count` floats as so many streams side by side, each line asked for `Ahead` bytes early (0: not asked for).
template <int Streams, int Ahead>
[[gnu::noinline]] void read_streams(const float* from, reigen::Index count) {
    using namespace reigen::detail;
    constexpr int packets_a_line = std::max(1, 16 / lanes<float>);
    constexpr reigen::Index line = packets_a_line * lanes<float>;
    const reigen::Index length = count / Streams / line * line;
    Packet<float> sums[packets_a_line];
    unrolled<packets_a_line>([&](auto p) REIGEN_INLINE_LAMBDA { sums[p] = broadcast<float>(0); });
    for (reigen::Index at = 0; at < length; at += line)
        unrolled<Streams>([&](auto stream) REIGEN_INLINE_LAMBDA {
            const float* place = from + stream * length + at;
            if constexpr (Ahead > 0)
                __builtin_prefetch(place + Ahead / sizeof(float));
            unrolled<packets_a_line>([&](auto p) REIGEN_INLINE_LAMBDA {
                sums[p] = Eigen::internal::padd(sums[p], load<float>(place + p * lanes<float>));
            });
        });
    unrolled<packets_a_line>([&](auto p) REIGEN_INLINE_LAMBDA { touch(sums[p]); });
}

/// How fast one core reads what lies in no cache.
class StreamingReader {
  public:
    /// Tries several ways to read: on Zen 3 four streams reach 1.2 times what one does, elsewhere it is prefetching.
    StreamingReader() : numbers_(chunks * chunk_) {
        std::ranges::fill(numbers_, 1.0F);
        constexpr Read ways[] = {read_streams<1, 0>,    read_streams<2, 0>,    read_streams<4, 0>,
                                 read_streams<8, 0>,    read_streams<1, 2048>, read_streams<2, 2048>,
                                 read_streams<4, 2048>, read_streams<8, 2048>};
        std::vector<double> speeds[std::size(ways)];
        for (int round = 0; round < 7; ++round)
            for (std::size_t way = 0; way < std::size(ways); ++way)
                speeds[way].push_back(bandwidth_of(ways[way]));
        double best = 0;
        for (std::size_t way = 0; way < std::size(ways); ++way)
            if (median(speeds[way]) > best) {
                best = median(speeds[way]);
                read_ = ways[way];
            }
    }

    /// Bytes a second at this moment, by the fastest way: a burst of some milliseconds.
    double bandwidth() { return bandwidth_of(read_); }

  private:
    using Read = void (*)(const float*, reigen::Index);
    static constexpr reigen::Index chunks = 4; // read in turns: before one is read again, the others have replaced it

    double bandwidth_of(Read read) {
        const float* from = numbers_.data() + next_ * chunk_;
        next_ = (next_ + 1) % chunks;
        return double(chunk_) * sizeof(float) / seconds_of([&] { read(from, chunk_); });
    }

    reigen::Index chunk_ = largest_cache() / reigen::Index(sizeof(float));
    reigen::Index next_ = 0;
    reigen::Buffer<float> numbers_; // in huge pages, where there are some
    Read read_ = nullptr;
};

/// Bytes a second that one core reads from memory at this moment.
inline double streaming_bandwidth() {
    static StreamingReader reader;
    return reader.bandwidth();
}

} // namespace bench
