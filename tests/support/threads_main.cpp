#include "support/faults.hpp"

#include <reigen/comm/threads.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace {
constexpr reigen::ThreadOptions options = {.deadline = 60};
}

void on_world(int ranks, const WorldBody& body) {
    try {
        reigen::run_threads(
            ranks,
            [&](const reigen::Communicator& world) {
                SCOPED_TRACE(reigen::concat("rank ", world.rank(), " of ", world.size(), " threads"));
                body(disturbed(world));
            },
            options);
    } catch (const std::exception& error) {
        ADD_FAILURE() << "on " << ranks << " threads: " << error.what();
    }
}

void on_every_world(const WorldBody& body) {
    for (const int ranks : {1, 2, 3, 4, 5})
        on_world(ranks, body);
}

int main(int argc, char** argv) {
    setenv("REIGEN_CHECKED", "1", false);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
