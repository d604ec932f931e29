#include <support/world_options.hpp>

#include <support/checks.hpp>

#include <reigen/comm/checked.hpp>

namespace examples {

void WorldOptions::declare(CLI::App& app) {
    app.add_flag("--checked", checked_,
                 "Have the ranks compare what they call before each collective, so that a disagreement is an error on "
                 "all of them");
    app.add_option("--deadline", deadline_,
                   "Give up on a rank that is waited for longer than this; 0 is never, 300 unless set")
        ->type_name("SECONDS")
        ->check(at_least(0));
}

reigen::Communicator WorldOptions::apply(const reigen::Communicator& world) const {
    if (deadline_)
        world.set_deadline(*deadline_);
    return checked_ ? reigen::checked(world) : world;
}

} // namespace examples
