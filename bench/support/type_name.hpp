#pragma once

#include <reigen/core/types.hpp>

namespace bench {

/// "float", "double" or "bfloat16"
template <class T>
inline constexpr const char* name_of = nullptr;
template <>
inline constexpr const char* name_of<float> = "float";
template <>
inline constexpr const char* name_of<double> = "double";
template <>
inline constexpr const char* name_of<reigen::bfloat16> = "bfloat16";

} // namespace bench
