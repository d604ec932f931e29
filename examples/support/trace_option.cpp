#include <support/trace_option.hpp>

#include <support/checks.hpp>
#include <support/console.hpp>
#include <support/first_rank.hpp>

#include <reigen/comm/trace.hpp>

#include <algorithm>
#include <fstream>
#include <ostream>

namespace examples {

void TraceOption::declare(CLI::App& app) {
    app.add_option("--trace", path_,
                   "Record what every rank does and waits for: a summary at the end, and all of it in this file for "
                   "ui.perfetto.dev")
        ->type_name("FILE")
        ->check(not_empty("the name of a file"));
}

int TraceOption::run(const reigen::Communicator& world, const RankBody& body) const {
    if (path_.empty())
        return body(world);
    std::ofstream file = file_of_first_rank(world, path_);
    const reigen::Trace trace(world);
    const int code = body(trace.world());
    const std::string summary = to_string(trace.summary());
    trace.write(file);
    const bool complete = world.rank() != 0 || bool(file.flush());
    console(world) << "Trace of " << world.size() << (world.size() == 1 ? " rank" : " ranks") << " in " << path_
                   << (complete ? "" : ", which is not complete: writing to it failed") << "\n\n"
                   << summary << std::flush;
    return complete ? code : std::max(code, 1);
}

} // namespace examples
