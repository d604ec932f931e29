#pragma once

#include "support/worlds.hpp"

#include <reigen/comm/faulty.hpp>

#include <cstdlib>
#include <map>
#include <string>

/// The world as it is, or on the bad transport that REIGEN_TEST_FAULTS names; compared if the world is.
inline reigen::Communicator disturbed(const reigen::Communicator& world) {
    static const std::map<std::string, reigen::FaultPlan> plans = {
        {"delayed", {.delay = 1e-4, .late = 3}},
        {"unbuffered", {.delay = 5e-5, .late = 1, .synchronous = true}},
        {"blocks", {.late = 1, .synchronous = true, .block = 7}},
    };
    const char* const name = std::getenv("REIGEN_TEST_FAULTS");
    if (name == nullptr)
        return world;
    const reigen::Communicator bad = faulty(unchecked(world), plans.at(name));
    return world.backend()->compares() ? checked(bad) : bad;
}
