#pragma once

#include <reigen/comm/communicator.hpp>

#include <iosfwd>

namespace examples {

/// stdout on rank 0, and a stream that swallows everything on the others.
std::ostream& console(const reigen::Communicator& world);

/// Columns of the terminal in which a person reads what rank 0 prints; 0 where there is none (a file, a pipe), and on
/// the other ranks.
int terminal_columns(const reigen::Communicator& world);

} // namespace examples
