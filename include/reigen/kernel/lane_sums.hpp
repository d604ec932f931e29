#pragma once

#include <reigen/kernel/packet.hpp>

#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Sums of the lanes of several packets at once: about three instructions each, where one alone takes a dozen.
///
/// Order       halves are added: lane j and lane j + lanes / 2, and so on with the sums. The bits of a sum therefore
///             depend on its own packet only, not on how many are added up, nor in how many steps.
template <class T>
class LaneSums {
    static constexpr int L = lanes<T>;

  public:
    /// Leaves in packets[0], in blocks of L / Count lanes, what is then still to be added up of each packet.
    template <int Count>
    static REIGEN_INLINE void begin(Packet<T>* packets) {
        fold<Count, L / 2>(packets);
    }

    /// The sums of L packets, of which `begin` has left L / Count: packet i of the one numbered n is lane n Count + i.
    template <int Count>
    static REIGEN_INLINE Packet<T> finish(Packet<T>* packets) {
        constexpr int left = L / Count;
        fold<left, left / 2>(packets);
        return transposed<Count>(packets[0]);
    }

  private:
    /// Blocks of 2 Distance lanes of each packet become blocks of Distance, then half of that, until one packet is left.
    template <int Count, int Distance>
    static REIGEN_INLINE void fold(Packet<T>* packets) {
        if constexpr (Count > 1) {
            unrolled<Count / 2>([&](auto i) REIGEN_INLINE_LAMBDA {
                packets[i] = add_halves<Distance>(packets[i], packets[i + Count / 2]);
            });
            fold<Count / 2, Distance / 2>(packets);
        }
    }

    /// Adds up the halves of each block of 2 Distance lanes; sums of a and b take turns.
    template <int Distance>
    static REIGEN_INLINE Packet<T> add_halves(const Packet<T>& a, const Packet<T>& b) {
        return [&]<int... J>(std::integer_sequence<int, J...>) REIGEN_INLINE_LAMBDA {
            const Packet<T> own = __builtin_shufflevector(a, b, ((J & Distance) ? L + J : J)...);
            const Packet<T> other =
                __builtin_shufflevector(a, b, ((J & Distance) ? L + J - Distance : J + Distance)...);
            return Eigen::internal::padd(own, other);
        }(std::make_integer_sequence<int, L>{});
    }

    /// A packet as Count rows of lanes, read by columns.
    template <int Count>
    static REIGEN_INLINE Packet<T> transposed(const Packet<T>& packet) {
        if constexpr (Count == 1 || Count == L)
            return packet;
        else
            return [&]<int... J>(std::integer_sequence<int, J...>) REIGEN_INLINE_LAMBDA {
                return Packet<T>(__builtin_shufflevector(packet, packet, (J % Count * (L / Count) + J / Count)...));
            }(std::make_integer_sequence<int, L>{});
    }
};

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
