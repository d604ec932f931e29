#pragma once

#include <reigen/core/types.hpp>

#include <string>

namespace examples {

/// "0 B", "12.3 KiB", "1.5 GiB".
std::string bytes_text(reigen::Index bytes);

/// "1,234,567"
std::string count_text(reigen::Index count);

/// "7 s", "1:05", "2:03:04".
std::string duration_text(double seconds);

/// A number with that many digits after the point.
std::string fixed_text(double value, int digits);

/// A number in the form 1.2e-07.
std::string scientific_text(double value);

} // namespace examples
