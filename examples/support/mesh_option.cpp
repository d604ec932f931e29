#include <support/mesh_option.hpp>

#include <support/program.hpp>

#include <reigen/core/error.hpp>

#include <charconv>
#include <limits>
#include <optional>
#include <sstream>

namespace examples {
namespace {

using reigen::concat;

constexpr reigen::Axes named_axes[] = {reigen::Axes::dp, reigen::Axes::cp, reigen::Axes::tp};

std::optional<int> positive_number(const std::string& text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && value >= 1 ? std::optional(value) : std::nullopt;
}

std::string ranks_text(long ranks) {
    return concat(ranks, ranks == 1 ? " rank" : " ranks");
}

/// The size that the text gives the axis, if it names it.
std::optional<int> size_of(reigen::Axes axis, const std::string& text) {
    std::optional<int> found;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');)
        if (const auto name = to_string(axis) + '='; part.starts_with(name)) {
            if (found)
                throw UsageError(concat("--mesh ", text, " names ", to_string(axis), " twice"));
            found = positive_number(part.substr(name.size()));
        }
    return found;
}

void require_form(const std::string& text) {
    std::istringstream parts(text + (text.ends_with(',') ? "," : "")); // a last part without a comma may be empty too
    for (std::string part; std::getline(parts, part, ',');) {
        const auto equals = part.find('=');
        const auto name = part.substr(0, equals);
        const bool known = name == "dp" || name == "cp" || name == "tp";
        if (!known || equals == std::string::npos || !positive_number(part.substr(equals + 1)))
            throw UsageError(concat("--mesh ", text, ": want something like dp=1,cp=2,tp=2, found '", part, "'"));
    }
}

} // namespace

std::vector<reigen::MeshAxis> mesh_axes(const std::string& text, int ranks) {
    require_form(text);
    std::vector<reigen::MeshAxis> axes;
    long product = 1;
    for (const auto axis : named_axes) {
        const auto size = size_of(axis, text);
        const bool takes_the_rest = axis == reigen::Axes::tp && !size && ranks % product == 0;
        axes.push_back({axis, takes_the_rest ? int(ranks / product) : size.value_or(1)});
        if (__builtin_mul_overflow(product, axes.back().size, &product))
            product = std::numeric_limits<long>::max();
    }
    if (product != ranks)
        throw UsageError(concat("--mesh ", text, " is for ", ranks_text(product), ", there ",
                                ranks == 1 ? "is " : "are ", ranks, "; start it with --ranks ", product,
                                " or mpirun -n ", product));
    return axes;
}

} // namespace examples
