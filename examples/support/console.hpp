#pragma once

#include <reigen/comm/communicator.hpp>

#include <iosfwd>

namespace examples {

/// stdout on rank 0, and a stream that swallows everything on the others.
std::ostream& console(const reigen::Communicator& world);

/// Whether stdout ends in a terminal that a person looks at, also through a launcher.
bool stdout_is_terminal();

/// Columns of the terminal; 80 where unknown.
int terminal_columns();

} // namespace examples
