#pragma once

#include <reigen/comm/communicator.hpp>

#include <functional>
#include <string>
#include <vector>

/// What ranks do together in the failing program.
struct NamedOperation {
    std::string name;

    /// Everything a rank needs before; gives what then communicates. `extra` makes one rank's shape another one.
    std::function<std::function<void()>(const reigen::Communicator& world, reigen::Index extra)> prepare;
};

/// Every collective, messages round a ring, ring attention forwards and backwards, and a pair of linear layers.
const std::vector<NamedOperation>& operations();
