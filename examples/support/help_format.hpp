#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace examples {

/// How --help writes an option: "--layout contiguous|zigzag|striped   How ... [zigzag]".
class HelpFormat : public CLI::Formatter {
  public:
    HelpFormat() { column_width(34); }

    /// The words to choose from, or the type.
    std::string make_option_opts(const CLI::Option* option) const override {
        const std::string type = option->get_type_name();
        const auto colon = type.find(':');
        if (type.empty() || colon == std::string::npos)
            return type.empty() ? "" : " " + type;
        const std::string rule = type.substr(colon + 1);
        return " " + (rule.find('|') != std::string::npos ? rule : type.substr(0, colon));
    }

    /// The description, with the value it has when it is not given.
    std::string make_option_desc(const CLI::Option* option) const override {
        const std::string value = option->get_default_str();
        return option->get_description() + (value.empty() ? "" : " [" + value + "]");
    }
};

} // namespace examples
