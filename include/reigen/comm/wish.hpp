#pragma once

#include <reigen/core/instruction_set.hpp>

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// The choice whose name a variable in the environment of this process has for its value; where it is unset or empty,
/// `otherwise`; nothing where it has another value.
template <class Choice>
std::optional<Choice> wish_of_environment(const char* variable, std::initializer_list<Choice> choices,
                                          Choice otherwise) {
    const char* const value = std::getenv(variable);
    const std::string_view wish = value != nullptr ? value : "";
    if (wish.empty())
        return otherwise;
    for (const Choice choice : choices)
        if (wish == to_string(choice))
            return choice;
    return std::nullopt;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
