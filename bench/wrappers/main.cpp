#include "wrappers.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

int main(int argc, char** argv) {
    CLI::App app("Measures what the wrappers of a communicator cost where they are on.", "wrappers");
    bool checked = false, traced = false;
    app.add_flag("--checked", checked, "Only Checked: time that comparing adds to a collective, on threads");
    app.add_flag("--traced", traced, "Only Traced: processor time that recording adds to an operation, for each event");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help() << std::flush;
        return 0;
    } catch (const CLI::ParseError& error) {
        std::cerr << "wrappers: " << error.what() << '\n';
        return 2;
    }
    if (checked || !traced)
        measure_checked();
    if (traced || !checked)
        measure_traced();
}
