#include "wrappers.hpp"

#include <support/command_line.hpp>

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
    CLI::App app("Measures what the wrappers of a communicator cost where they are on.", "wrappers");
    bool checked = false, traced = false;
    app.add_flag("--checked", checked, "Only Checked: time that comparing adds to a collective, on threads");
    app.add_flag("--traced", traced, "Only Traced: processor time that recording adds to an operation, for each event");
    if (const auto code = bench::exit_code_of_parsing(app, argc, argv))
        return *code;
    if (checked || !traced)
        measure_checked();
    if (traced || !checked)
        measure_traced();
}
