#pragma once

#include <CLI/CLI.hpp>

#include <sstream>
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

    /// The description, with the value it has when it is not given, in lines that fit.
    std::string make_option_desc(const CLI::Option* option) const override {
        const std::string value = option->get_default_str();
        std::istringstream words(option->get_description() + (value.empty() ? "" : " [" + value + "]"));
        std::string text;
        std::size_t line = 0; // columns of the last one
        for (std::string word; words >> word; line += word.size() + 1) {
            const bool breaks = line + word.size() > text_columns;
            text += (text.empty() ? "" : breaks ? "\n" : " ") + word;
            line = breaks ? 0 : line;
        }
        return text;
    }

  private:
    static constexpr std::size_t text_columns = 76;
};

} // namespace examples
