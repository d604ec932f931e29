#pragma once

#include <reigen/kernel/packet.hpp>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Transposes the lanes x lanes elements held in as many packets, by shuffles that are single instructions: first
/// inside 128-bit quarters, then between them. (Eigen's ptranspose makes g++ 12 warn of uninitialised values in every
/// file that uses it with AVX-512.)
template <class T>
class PacketTranspose {
    static constexpr int L = lanes<T>;
    static constexpr int quarter = std::min(L, 16 / int(sizeof(T)));

  public:
    static REIGEN_INLINE void apply(Packet<T> (&rows)[L]) {
        for_powers<1, quarter>([&](auto) REIGEN_INLINE_LAMBDA { zip_groups(rows); });
        for_powers<quarter, L>([&](auto distance) REIGEN_INLINE_LAMBDA { swap_blocks<distance>(rows); });
    }

  private:
    /// f(First), f(2 First), ... below End.
    template <int First, int End, class F>
    static REIGEN_INLINE void for_powers(F&& f) {
        if constexpr (First < End) {
            f(std::integral_constant<int, First>{});
            for_powers<2 * First, End>(f);
        }
    }

    /// Lane j of the result is lane Select::from(j) of a, then b.
    template <class Select>
    static REIGEN_INLINE Packet<T> shuffle(const Packet<T>& a, const Packet<T>& b) {
        return [&]<int... J>(std::integer_sequence<int, J...>) REIGEN_INLINE_LAMBDA {
            return __builtin_shufflevector(a, b, Select::from(J)...);
        }(std::make_integer_sequence<int, L>{});
    }

    /// a0 b0 a1 b1 ... from one half of each quarter.
    template <int Half>
    struct Zip {
        static constexpr int from(int j) {
            return j / quarter * quarter + Half * quarter / 2 + j % quarter / 2 + (j % 2) * L;
        }
    };

    /// Of two rows `Distance` apart, the blocks that stay or come from the other row.
    template <int Distance>
    struct Upper {
        static constexpr int from(int j) { return (j & Distance) ? L + j - Distance : j; }
    };
    template <int Distance>
    struct Lower {
        static constexpr int from(int j) { return (j & Distance) ? L + j : j + Distance; }
    };

    /// One of the log2(quarter) zips that transpose each quarter x quarter square.
    static REIGEN_INLINE void zip_groups(Packet<T> (&rows)[L]) {
        Packet<T> before[L];
        unrolled<L>([&](auto i) REIGEN_INLINE_LAMBDA { before[i] = rows[i]; });
        unrolled<L / 2>([&](auto pair) REIGEN_INLINE_LAMBDA {
            constexpr int group = 2 * pair / quarter * quarter;
            constexpr int i = pair - group / 2;
            rows[group + 2 * i] = shuffle<Zip<0>>(before[group + i], before[group + i + quarter / 2]);
            rows[group + 2 * i + 1] = shuffle<Zip<1>>(before[group + i], before[group + i + quarter / 2]);
        });
    }

    template <int Distance>
    static REIGEN_INLINE void swap_blocks(Packet<T> (&rows)[L]) {
        unrolled<L>([&](auto i) REIGEN_INLINE_LAMBDA {
            if constexpr ((i & Distance) == 0) {
                const Packet<T> upper = rows[i];
                rows[i] = shuffle<Upper<Distance>>(upper, rows[i + Distance]);
                rows[i + Distance] = shuffle<Lower<Distance>>(upper, rows[i + Distance]);
            }
        });
    }
};

template <class T>
REIGEN_INLINE void transpose_packets(Packet<T> (&rows)[lanes<T>]) {
    if constexpr (lanes<T> > 1)
        PacketTranspose<T>::apply(rows);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
