#pragma once

#include <reigen/core/instruction_set.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The FNV-1a hash of what is put into it, 64 bits, the same on every machine and build.
///
/// Source  Fowler, Noll, Vo, Eastlake, Hansen, "The FNV non-cryptographic hash algorithm", RFC 9923
class Hash {
  public:
    constexpr Hash& operator<<(std::string_view text) {
        for (const char byte : text)
            mix(std::uint8_t(byte));
        return *this;
    }

    template <class Number>
        requires std::is_arithmetic_v<Number>
    constexpr Hash& operator<<(Number number) {
        for (std::uint64_t left = std::uint64_t(number), byte = 0; byte < 8; ++byte, left >>= 8)
            mix(std::uint8_t(left));
        return *this;
    }

    constexpr std::uint64_t value() const { return value_; }

  private:
    constexpr void mix(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

    std::uint64_t value_ = 0xcbf29ce484222325;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
