#pragma once

#include <reigen/comm/wish.hpp>

#include <cstdint>
#include <optional>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Whether the ranks of a machine divide its cores among themselves. In the order in which a wish of one rank overrules
/// those of the others.
enum class Binding : std::uint8_t {
    automatic, // where their launcher left them all the same cores, and there are enough
    never      // ranks stay as they were launched
};

inline const char* to_string(Binding choice) {
    constexpr const char* names[] = {"automatic", "never"};
    return names[int(choice)];
}

namespace detail {

/// What REIGEN_BINDING in the environment of this process says, else `otherwise`; nothing where it has another value
/// than the names of the choices.
inline std::optional<Binding> binding_wish(Binding otherwise) {
    return wish_of_environment("REIGEN_BINDING", {Binding::automatic, Binding::never}, otherwise);
}

} // namespace detail

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
