#pragma once

#include <CLI/CLI.hpp>

#include <iostream>
#include <optional>

namespace bench {

/// Reads the command line. Gives an exit code where the program is to end: 0 after --help, 2 for a wrong option, of which
/// one line says what is wrong.
inline std::optional<int> exit_code_of_parsing(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help() << std::flush;
        return 0;
    } catch (const CLI::ParseError& error) {
        std::cerr << app.get_name() << ": " << error.what() << '\n';
        return 2;
    }
}

} // namespace bench
