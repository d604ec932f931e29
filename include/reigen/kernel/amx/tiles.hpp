#pragma once

#include <reigen/core/error.hpp>
#include <reigen/kernel/microkernel.hpp>

#if defined(REIGEN_AMX)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// What a thread holds while it multiplies M: nothing, unless M goes through tiles.
template <class M>
struct ProductRegisters {
    ProductRegisters() {} // so that nobody calls it unused
};

#if defined(REIGEN_AMX)

// AMX multiplies tiles: registers of 16 rows of 64 bytes.
//
//     left factor     16 rows of 32 bfloat16 along k
//     right factor    16 pairs along k, each of 16 columns: a packed panel as it lies
//     sums            16 rows of 16 floats
//
// Each product adds to every sum that of 16 first elements of pairs plus that of 16 second ones, each a chain from zero.
//
// Source  Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS

inline constexpr Index amx_rows = 16;                   // of a tile
inline constexpr Index amx_k = 32;                      // bfloat16 that one product of tiles adds up: a group
inline constexpr Index amx_tile = amx_rows * amx_k / 2; // pairs in a tile

/// Linux grants the registers to processes that ask for them.
///
/// Throws  Error
inline void require_amx() {
    constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM of asm/prctl.h
    static const bool granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    require<Error>(granted, "reigen: this file is compiled for AMX, which the system does not grant; compile it with "
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

template <>
struct ProductRegisters<BFloat16Pair> : AmxRegisters {};

/// Where tiles of a left factor lie: pair k of row i of a tile is data[i * row + k]. Its next group begins `group` pairs
/// further on, the tile below it `tile`.
struct AmxLeft {
    const BFloat16Pair* data;
    Index row;
    Index group;
    Index tile;
};

inline void zero_amx_sums() {
    asm volatile("" ::: "memory"); // g++ 12 does not know that tiles are loaded from memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/// sums += left * right over so many groups, for up to 2 x 2 tiles: registers 0 and 1 have the sums of the first rows, 2
/// and 3 of the second. each_group is called with the place in the right factor before every group.
template <int Rows, int Panels, class EachGroup = NoAction>
REIGEN_INLINE void add_amx_groups(Index groups, AmxLeft left, RightPanel<BFloat16Pair> right,
                                  EachGroup each_group = {}) {
    const Index left_bytes = left.row * Index(sizeof(BFloat16Pair)),
                right_bytes = right.step * Index(sizeof(BFloat16Pair));
    for (Index group = 0; group < groups; ++group) {
        each_group(right.data);
        _tile_loadd(6, right.data, right_bytes);
        _tile_loadd(4, left.data, left_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (Rows > 1) {
            _tile_loadd(5, left.data + left.tile, left_bytes);
            _tile_dpbf16ps(2, 5, 6);
        }
        if constexpr (Panels > 1) {
            _tile_loadd(7, right.data + right.packet, right_bytes);
            _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (Rows > 1 && Panels > 1)
            _tile_dpbf16ps(3, 5, 7);
        left.data += left.group;
        right.data += amx_rows * right.step;
    }
}

/// sums[16 Rows][16 Panels] = the registers; its rows are `row` floats apart.
template <int Rows, int Panels>
REIGEN_INLINE void store_amx_sums(float* sums, Index row) {
    const Index row_bytes = row * Index(sizeof(float));
    _tile_stored(0, sums, row_bytes);
    if constexpr (Panels > 1)
        _tile_stored(1, sums + lanes<float>, row_bytes);
    if constexpr (Rows > 1)
        _tile_stored(2, sums + amx_rows * row, row_bytes);
    if constexpr (Rows > 1 && Panels > 1)
        _tile_stored(3, sums + amx_rows * row + lanes<float>, row_bytes);
}

#endif

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
