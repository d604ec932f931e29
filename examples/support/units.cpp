#include <support/units.hpp>

#include <array>
#include <cmath>
#include <cstdio>

namespace examples {
namespace {

template <class... Values>
std::string print(const char* form, Values... values) {
    std::array<char, 64> text{};
    const int length = std::snprintf(text.data(), text.size(), form, values...);
    return {text.data(), std::size_t(length)};
}

} // namespace

std::string bytes_text(reigen::Index bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = double(bytes);
    std::size_t unit = 0;
    for (; std::abs(value) >= 1024 && unit + 1 < std::size(units); ++unit)
        value /= 1024;
    return print(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

std::string count_text(reigen::Index count) {
    std::string text = std::to_string(count);
    for (auto place = std::ptrdiff_t(text.size()) - 3; place > (count < 0 ? 1 : 0); place -= 3)
        text.insert(std::size_t(place), 1, ',');
    return text;
}

std::string duration_text(double seconds) {
    const long whole = std::lround(seconds);
    if (whole < 60)
        return print("%ld s", whole);
    if (whole < 3600)
        return print("%ld:%02ld", whole / 60, whole % 60);
    return print("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string fixed_text(double value, int digits) {
    return print("%.*f", digits, value);
}

std::string scientific_text(double value) {
    return print("%.1e", value);
}

} // namespace examples
