#pragma once

#include <reigen/kernel/packet_math.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// 2^x on [0, 1) as a polynomial whose constant term is exactly 1, highest power first; least relative error there
/// (Remez): 2.0e-9 for float, 3.2e-18 for double.
template <class T>
inline constexpr std::array<T, 7> exp2_coefficients = {T(0.00021612914969557343788),
                                                       T(0.0012467846450773492551),
                                                       T(0.0096754515652170405198),
                                                       T(0.055485280620182784799),
                                                       T(0.24022930555173854114),
                                                       T(0.69314704444336655545),
                                                       T(1)};
template <>
inline constexpr std::array<double, 12> exp2_coefficients<double> = {
    6.2634652734225902742e-10, 6.5595298355172712178e-9,  1.025321230405209001e-7,  1.3208367308220049348e-6,
    1.525317505379524616e-5,   0.00015403512309733948746, 0.0013333558629562675936, 0.0096181290995508956128,
    0.055504108665602238723,   0.24022650695906330315,    0.69314718055994592839,   1};

/// 2^r for integers r from the smallest normal exponent up; 0 one below that.
template <class T>
REIGEN_INLINE Packet<T> power_of_two(const Packet<T>& r) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    typedef Bits BitsVector __attribute__((vector_size(sizeof(Packet<T>))));
    constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
    constexpr T bias = T(std::numeric_limits<T>::max_exponent - 1);
    // A number this large has its units in the lowest bit: adding it leaves r + bias there.
    constexpr T shifter = T(1.5) * T(Bits(1) << fraction_bits) + bias;
    const Packet<T> shifted = Eigen::internal::padd(r, broadcast<T>(shifter));
    BitsVector bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits <<= fraction_bits;
    Packet<T> power;
    std::memcpy(&power, &bits, sizeof bits);
    return power;
}

/// 2^t for t < max_exponent (128 for float): exactly 1 at 0; 0 at -infinity and wherever the result would be below the
/// smallest normal number; NaN for NaN.
///
/// Order   within 1.5 ulp of the exact power of its argument; the same bits in every lane
template <class T>
REIGEN_INLINE Packet<T> exp2(const Packet<T>& t) {
    using namespace Eigen::internal;
    constexpr auto& coefficients = exp2_coefficients<T>;
    constexpr T lowest = T(std::numeric_limits<T>::min_exponent - 2); // its power of two is 0 above
    const Packet<T> clamped = larger<T>(t, broadcast<T>(lowest));     // in this order a NaN stays one
    const Packet<T> whole = round_down<T>(clamped);
    const Packet<T> x = psub(clamped, whole);
    Packet<T> sum = broadcast<T>(coefficients[0]);
    unrolled<int(coefficients.size()) - 1>(
        [&](auto k) REIGEN_INLINE_LAMBDA { sum = multiply_add<T>(sum, x, broadcast<T>(coefficients[k + 1])); });
    return pmul(sum, power_of_two<T>(whole));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
