#include <support/checks.hpp>

#include <reigen/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace examples {
namespace {

using reigen::concat;

/// A validator for numbers that satisfy `good`; `rule` is what the message and --help say.
template <class Good>
CLI::Validator number(const std::string& rule, Good good) {
    const auto check = [rule, good](std::string& text) {
        double value = std::numeric_limits<double>::quiet_NaN();
        const bool fits = CLI::detail::lexical_cast(text, value) && std::isfinite(value) && good(value);
        return fits ? std::string() : concat("want a number ", rule, ", not '", text, "'");
    };
    return CLI::Validator(check, rule);
}

} // namespace

CLI::Validator at_least(double least) {
    return number(concat(">= ", least), [least](double value) { return value >= least; });
}

CLI::Validator positive() {
    return number("> 0", [](double value) { return value > 0; });
}

CLI::Validator between(double least, double most) {
    return number(concat("in ", least, " ... ", most), [=](double value) { return value >= least && value <= most; });
}

CLI::Validator seed() {
    const auto check = [](std::string& text) {
        std::uint64_t value = 0;
        const char* const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, value);
        const bool fits = error == std::errc{} && end == last;
        return fits ? std::string() : concat("want a whole number in 0 ... 2^64 - 1, not '", text, "'");
    };
    return CLI::Validator(check, "0 ... 2^64 - 1");
}

CLI::Validator not_empty(const std::string& wanted) {
    const auto check = [wanted](std::string& text) {
        return text.empty() ? concat("want ", wanted, ", not ''") : std::string();
    };
    return CLI::Validator(check, "");
}

CLI::Validator one_of(std::vector<std::string> words) {
    std::string list;
    for (const std::string& word : words)
        list += (list.empty() ? "" : "|") + word;
    const auto check = [words = std::move(words), list](std::string& text) {
        const bool known = std::find(words.begin(), words.end(), text) != words.end();
        return known ? std::string() : concat("want ", list, ", not '", text, "'");
    };
    return CLI::Validator(check, list);
}

std::string too_many(const std::vector<NamedSize>& factors) {
    double product = 1;
    std::string text;
    for (const NamedSize& factor : factors) {
        product *= factor.value;
        text += concat(text.empty() ? "" : " x ", factor.option, ' ', factor.value);
    }
    const std::string total = factors.size() == 1 ? " is" : concat(" is ", product, ',');
    return product > 1e12 ? text + total + " more than this program can count on" : "";
}

std::string any_too_many(const std::vector<std::vector<NamedSize>>& products) {
    for (const auto& factors : products)
        if (std::string wrong = too_many(factors); !wrong.empty())
            return wrong;
    return "";
}

} // namespace examples
