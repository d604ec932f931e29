#pragma once

#include <reigen/comm/mesh.hpp>

#include <ostream>

namespace split_matrix {

/// A product in float whose last bits depend on how many ranks share its sum, and the mode in which they do not.
/// Collective over the mesh.
void show_last_bits(const reigen::Mesh& mesh, std::ostream& out);

} // namespace split_matrix
