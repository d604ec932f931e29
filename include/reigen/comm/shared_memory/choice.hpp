#pragma once

#include <reigen/comm/wish.hpp>

#include <cstdint>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Whether processes of one machine exchange through memory that they share. In the order in which a wish of one rank
/// overrules those of the others.
enum class SharedMemory : std::uint8_t {
    automatic, // where it can be had
    always,    // an error where it cannot
    never      // messages alone
};

inline const char* to_string(SharedMemory choice) {
    constexpr const char* names[] = {"automatic", "always", "never"};
    return names[int(choice)];
}

namespace detail {

/// What REIGEN_SHARED_MEMORY in the environment of this process says, else `otherwise`; nothing where it has another
/// value than the names of the choices.
inline std::optional<SharedMemory> shared_memory_wish(SharedMemory otherwise) {
    return wish_of_environment("REIGEN_SHARED_MEMORY",
                               {SharedMemory::automatic, SharedMemory::always, SharedMemory::never}, otherwise);
}

} // namespace detail

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
