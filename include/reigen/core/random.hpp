#pragma once

#include <reigen/core/types.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Random numbers as a pure function of (key, stream, index): any rank can compute any element's number, so a
/// sharded tensor holds exactly the values of the whole one.
///
/// Source  Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
class RandomStream {
  public:
    /// The stream named by any number of identifiers, for instance (seed, step, tensor).
    template <class... Identifiers>
    explicit RandomStream(std::uint64_t seed, Identifiers... identifiers) : key_(seed) {
        ((stream_ = mix(stream_ + std::uint64_t(identifiers))), ...);
    }

    /// Four independent 32-bit words for one index.
    std::array<std::uint32_t, 4> words(Index index) const {
        const auto counter = std::uint64_t(index);
        std::array<std::uint32_t, 4> x = {std::uint32_t(counter), std::uint32_t(counter >> 32), std::uint32_t(stream_),
                                          std::uint32_t(stream_ >> 32)};
        std::uint32_t k0 = std::uint32_t(key_);
        std::uint32_t k1 = std::uint32_t(key_ >> 32);
        for (int round = 0; round < 10; ++round) {
            const std::uint64_t a = std::uint64_t{0xD2511F53} * x[0];
            const std::uint64_t b = std::uint64_t{0xCD9E8D57} * x[2];
            x = {std::uint32_t(b >> 32) ^ x[1] ^ k0, std::uint32_t(b), std::uint32_t(a >> 32) ^ x[3] ^ k1,
                 std::uint32_t(a)};
            k0 += 0x9E3779B9;
            k1 += 0xBB67AE85;
        }
        return x;
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
    /// The finaliser of SplitMix64.
    static constexpr std::uint64_t mix(std::uint64_t x) {
        x += 0x9E3779B97F4A7C15;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
        return x ^ (x >> 31);
    }

    std::uint64_t key_;
    std::uint64_t stream_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
