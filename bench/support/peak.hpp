#pragma once

#include "support/stopwatch.hpp"

#include <reigen/kernel/amx/tiles.hpp>
#include <reigen/kernel/packet.hpp>

#if defined(REIGEN_BFLOAT16_PAIRS)
#include <immintrin.h>
#endif

namespace bench {

/// Chains of sums side by side: more than the 8 that two multiply-adds a cycle of latency 4 need, and, with 32
/// registers, than the 16 that products of bfloat16 pairs need, whose latency is 6.
inline constexpr int peak_chains = reigen::detail::packet_registers == 32 ? 24 : 12;

/// Makes the compiler believe that a packet is read, and perhaps changed, here.
template <class Packet>
REIGEN_INLINE void touch(Packet& packet) {
#if defined(__aarch64__)
    asm volatile("" : "+w"(packet));
#elif defined(__AVX512F__)
    asm volatile("" : "+v"(packet)); // any of 32 registers; with "+x", of 16, clang moves the others to memory
#else
    asm volatile("" : "+x"(packet));
#endif
}

/// Multiply-adds from registers to registers, nothing else: 2 flops a lane, `steps` times in every chain.
template <class T>
[[gnu::noinline]] void multiply_add_in_registers(int steps) {
    using namespace reigen::detail;
    Packet<T> sums[peak_chains];
    unrolled<peak_chains>([&](auto i) REIGEN_INLINE_LAMBDA { sums[i] = broadcast<T>(T(int(i))); });
    Packet<T> factor = broadcast<T>(T(0.5));
    Packet<T> term = broadcast<T>(T(1));
    for (int step = 0; step < steps; ++step) {
        touch(factor);
        touch(term);
        unrolled<peak_chains>([&](auto i) REIGEN_INLINE_LAMBDA { sums[i] = multiply_add<T>(sums[i], factor, term); });
    }
    unrolled<peak_chains>([&](auto i) REIGEN_INLINE_LAMBDA { touch(sums[i]); });
}

/// What the processor can do at this moment in products and sums of T, in flops a second: a burst of about 0.1 ms.
template <class T>
double multiply_add_peak() {
    constexpr int steps = 10000;
    const double seconds = seconds_of([] { multiply_add_in_registers<T>(steps); });
    return 2.0 * peak_chains * reigen::detail::lanes<T> * steps / seconds;
}

#if defined(REIGEN_AMX)

/// The same of tiles of bfloat16: 16 x 16 sums of 32 products each.
template <>
inline double multiply_add_peak<reigen::bfloat16>() {
    using namespace reigen::detail;
    constexpr int steps = 2000;
    const AmxRegisters registers;
    zero_amx_sums();
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    const double seconds = seconds_of([] {
        for (int step = 0; step < steps; ++step) {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
    });
    return 2.0 * 4 * 16 * 16 * 32 * steps / seconds;
}

#elif defined(REIGEN_BFLOAT16_PAIRS)

/// The same of pairs of bfloat16, summed in float: 4 flops a lane.
[[gnu::noinline]] inline void multiply_add_pairs_in_registers(int steps) {
    using reigen::detail::unrolled;
    __m512 sums[peak_chains];
    unrolled<peak_chains>([&](auto i) REIGEN_INLINE_LAMBDA { sums[i] = _mm512_set1_ps(float(int(i))); });
    __m512 pairs = _mm512_setzero_ps();
    for (int step = 0; step < steps; ++step) {
        touch(pairs);
        const auto factor = (__m512bh)(pairs);
        unrolled<peak_chains>([&](auto i)
                                  REIGEN_INLINE_LAMBDA { sums[i] = _mm512_dpbf16_ps(sums[i], factor, factor); });
    }
    unrolled<peak_chains>([&](auto i) REIGEN_INLINE_LAMBDA { touch(sums[i]); });
}

template <>
inline double multiply_add_peak<reigen::bfloat16>() {
    constexpr int steps = 10000;
    return 4.0 * peak_chains * 16 * steps / seconds_of([] { multiply_add_pairs_in_registers(steps); });
}

#else

/// Without an instruction of its own, or with a slow one, bfloat16 is widened: float's peak is its peak.
template <>
inline double multiply_add_peak<reigen::bfloat16>() {
    return multiply_add_peak<float>();
}

#endif

} // namespace bench
