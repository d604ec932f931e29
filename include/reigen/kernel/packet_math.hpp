#pragma once

#include <reigen/kernel/packet.hpp>

// g++ 12 takes the deliberately undefined operands inside its own AVX-512 intrinsics for mistakes (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// The larger, lane by lane; where `a` is NaN, NaN. A NaN in `b` alone may vanish (x86) or stay (ARM).
template <class T>
REIGEN_INLINE Packet<T> larger(const Packet<T>& a, const Packet<T>& b) {
    return Eigen::internal::pmax(a, b);
}

/// The largest integer not above, lane by lane.
template <class T>
REIGEN_INLINE Packet<T> round_down(const Packet<T>& a) {
    return Eigen::internal::pfloor(a);
}

/// `yes` where a == b, else `no`, lane by lane.
template <class T>
REIGEN_INLINE Packet<T> select_equal(const Packet<T>& a, const Packet<T>& b, const Packet<T>& yes,
                                     const Packet<T>& no) {
    return Eigen::internal::pselect(Eigen::internal::pcmp_eq(a, b), yes, no);
}

/// 1 where begin <= value < end, 0 elsewhere, lane by lane.
template <class T>
REIGEN_INLINE Packet<T> is_in(T value, const Packet<T>& begin, const Packet<T>& end) {
    using namespace Eigen::internal;
    const Packet<T> here = broadcast<T>(value);
    return pand(broadcast<T>(1), pand(pcmp_le(begin, here), pcmp_lt(here, end)));
}

/// The sum of the lanes.
template <class T>
REIGEN_INLINE T sum_of(const Packet<T>& a) {
    return Eigen::internal::predux(a);
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
