#pragma once

#include <reigen/core/instruction_set.hpp>

#include <limits>
#include <sstream>
#include <string>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A named value that the ranks of an algorithm must have in common: a size, a number or a word.
struct Field {
    template <class Value>
    Field(const char* name, const Value& value) {
        std::ostringstream out;
        out.precision(std::numeric_limits<double>::max_digits10);
        out << name << ' ' << value;
        text = out.str();
    }

    std::string text; // "kv_len 4096"
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
