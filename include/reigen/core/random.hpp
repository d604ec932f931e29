#pragma once

#include <reigen/core/types.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Ten rounds of Philox4x32: four random words that are a pure function of a 128-bit counter and a 64-bit key.
///
/// Source  Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {std::uint32_t(b >> 32) ^ counter[1] ^ key[0], std::uint32_t(b),
                   std::uint32_t(a >> 32) ^ counter[3] ^ key[1], std::uint32_t(a)};
        key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
    }
    return counter;
}

/// Random numbers as a pure function of (seed, identifiers, index): any rank can compute any element's number, so a
/// sharded tensor holds exactly the values of the whole one.
class RandomStream {
  public:
    /// The stream named by any number of identifiers, for instance (seed, step, tensor).
    template <class... Identifiers>
    explicit RandomStream(std::uint64_t seed, Identifiers... identifiers) : seed_(seed) {
        ((stream_ = mix(stream_ + std::uint64_t(identifiers))), ...);
    }

    /// Four independent 32-bit words for one index.
    std::array<std::uint32_t, 4> words(Index index) const {
        const auto [low, high] = halves(std::uint64_t(index));
        const auto [stream_low, stream_high] = halves(stream_);
        return philox4x32({low, high, stream_low, stream_high}, halves(seed_));
    }

    /// Uniform in [0, 1), 53 bits.
    double uniform(Index index) const {
        const auto w = words(index);
        return double(((std::uint64_t(w[0]) << 32) | w[1]) >> 11) * 0x1p-53;
    }

    /// Normal with mean 0 and variance 1 (Box-Muller).
    double normal(Index index) const {
        const auto w = words(index);
        const double radius = std::sqrt(-2 * std::log((double(w[0]) + 0.5) * 0x1p-32));
        return radius * std::cos(2 * std::numbers::pi * (double(w[1]) + 0.5) * 0x1p-32);
    }

  private:
    static constexpr std::array<std::uint32_t, 2> halves(std::uint64_t word) {
        return {std::uint32_t(word), std::uint32_t(word >> 32)};
    }

    /// The finaliser of SplitMix64.
    static constexpr std::uint64_t mix(std::uint64_t x) {
        x += 0x9E3779B97F4A7C15;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
        return x ^ (x >> 31);
    }

    std::uint64_t seed_;
    std::uint64_t stream_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
