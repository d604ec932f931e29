#pragma once

#include <reigen/kernel/multiplicand_packet.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Where a micro-kernel reads its left factor, one scalar at a time: element (i, k) is data[i * row + k * step].
/// Rows of a row-major matrix (step = 1) and packed columns (row = 1) are both this.
template <class T>
struct LeftPanel {
    const T* data;
    Index row;
    Index step;

    LeftPanel from_row(Index i) const { return {data + i * row, row, step}; }
    LeftPanel from_step(Index k) const { return {data + k * step, row, step}; }
};

/// Where it reads its right factor, one packet at a time: packet p of row k starts at data[p * packet + k * step].
/// Rows of a row-major matrix (packet = lanes) and packed panels (step = lanes) are both this.
template <class T>
struct RightPanel {
    const T* data;
    Index packet;
    Index step;

    RightPanel from_packet(Index p) const { return {data + p * packet, packet, step}; }
    RightPanel from_step(Index k) const { return {data + k * step, packet, step}; }
};

/// Height x Width packets of sums: what a micro-kernel keeps in registers.
template <class T, int Height, int Width>
struct Tile {
    Packet<T> sum[Height * Width];

    Packet<T>& operator()(int i, int p) { return sum[i * Width + p]; }
};

struct NoAction {
    REIGEN_INLINE void operator()(const void*) const {}
};

/// The tile of sums over k = 0, ..., depth - 1 of left(i, k) * right(k, p), k counting multiplicands: one chain of fused
/// multiply-adds an element, k ascending, from zero. Its bits therefore do not depend on Height, Width or the place in
/// the tile. The right factor may be stored in a narrower type; each_step is called with the place in it before every k.
///
/// Cost        depth (Height + Width) loads, depth Height Width multiply-adds
template <class M, int Height, int Width, class Right = M, class EachStep = NoAction>
REIGEN_INLINE Tile<SumOf<M>, Height, Width> multiply_tile(Index depth, LeftPanel<M> left, RightPanel<Right> right,
                                                          EachStep each_step = {}) {
    using T = SumOf<M>;
    Tile<T, Height, Width> tile;
    unrolled<Height * Width>([&](auto i) REIGEN_INLINE_LAMBDA { tile.sum[i] = broadcast<T>(0); });
    const M* rows[Height];
    unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA { rows[i] = left.data + i * left.row; });
    const Right* packets = right.data;
    const Index end = depth * left.step;
    for (Index at = 0; at != end; at += left.step) {
        each_step(packets);
        MultiplicandPacket<M> b[Width];
        unrolled<Width>([&](auto p) REIGEN_INLINE_LAMBDA {
            b[p] = load_multiplicands<M>(packets + p * right.packet);
            if constexpr (Height > 1 && Height * Width + Width < packet_registers)
                hold_in_register(b[p]);
        });
        unrolled<Height>([&](auto i) REIGEN_INLINE_LAMBDA {
            const MultiplicandPacket<M> a = broadcast_multiplicand<M>(rows[i][at]);
            unrolled<Width>([&](auto p) REIGEN_INLINE_LAMBDA { tile(i, p) = multiply_add<T>(a, b[p], tile(i, p)); });
        });
        packets += right.step;
    }
    return tile;
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
