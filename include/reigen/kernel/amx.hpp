#pragma once

#include <reigen/core/error.hpp>
#include <reigen/kernel/multiplicand.hpp>
#include <reigen/kernel/packet.hpp>

#if defined(REIGEN_AMX)

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

// AMX multiplies tiles: registers of 16 rows of 64 bytes.
//
//     left factor     16 rows of 32 bfloat16 along k
//     right factor    16 pairs along k, each of 16 columns: a packed panel as it lies
//     sums            16 rows of 16 floats
//
// Each product adds to every sum that of 16 first elements of pairs plus that of 16 second ones, each a chain from zero.
//
// Source  Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS

inline constexpr Index amx_rows = 16;               // of a tile
inline constexpr Index amx_k = 32;                  // bfloat16 that one product of tiles adds up
inline constexpr Index amx_left = amx_rows * amx_k; // bfloat16 in a tile of the left factor

/// Linux grants the registers to processes that ask for them.
///
/// Throws  Error
inline void require_amx() {
    constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM of asm/prctl.h
    static const bool granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    require<Error>(granted, "gemm: this file is compiled for AMX, which the system does not grant; compile it with "
                            "-mno-amx-bf16, or run it on Linux 5.16 or newer");
}

/// What LDTILECFG reads.
struct alignas(64) AmxConfiguration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr AmxConfiguration whole_amx_tiles = {};

/// The thread's tile registers as 8 whole tiles, while this lives.
class AmxRegisters {
  public:
    AmxRegisters() {
        require_amx();
        _tile_loadconfig(&whole_amx_tiles);
    }
    ~AmxRegisters() { _tile_release(); }
    AmxRegisters(const AmxRegisters&) = delete;
    AmxRegisters& operator=(const AmxRegisters&) = delete;
};

/// Some tiles' rows of a left factor times some panels of a right one, over amx_k a group.
struct AmxFactors {
    const bfloat16* left;      // [tile][group][row][k]
    Index left_tile;           // bfloat16 between two tiles
    const BFloat16Pair* right; // [panel][group][pair][column]
    Index panel;               // pairs between two panels
};

/// sums += one group of up to 2 x 2 tiles: registers 0 and 1 have the sums of the first rows, 2 and 3 of the second.
template <int Rows, int Panels>
REIGEN_INLINE void add_amx_group(const AmxFactors& at) {
    constexpr Index row_bytes = 64;
    _tile_loadd(6, at.right, row_bytes);
    _tile_loadd(4, at.left, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Rows > 1) {
        _tile_loadd(5, at.left + at.left_tile, row_bytes);
        _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (Panels > 1) {
        _tile_loadd(7, at.right + at.panel, row_bytes);
        _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (Rows > 1 && Panels > 1)
        _tile_dpbf16ps(3, 5, 7);
}

inline void zero_amx_sums() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/// sums[16 Rows][16 Panels] = the registers
template <int Rows, int Panels>
REIGEN_INLINE void store_amx_sums(float* sums) {
    constexpr Index row_bytes = Panels * 64, second_rows = amx_rows * Panels * 16;
    _tile_stored(0, sums, row_bytes);
    if constexpr (Panels > 1)
        _tile_stored(1, sums + 16, row_bytes);
    if constexpr (Rows > 1)
        _tile_stored(2, sums + second_rows, row_bytes);
    if constexpr (Rows > 1 && Panels > 1)
        _tile_stored(3, sums + second_rows + 16, row_bytes);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#endif
