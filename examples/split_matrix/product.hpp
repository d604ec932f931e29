#pragma once

#include <reigen/layout/sharded.hpp>

#include <ostream>

namespace split_matrix {

/// The smallest product, [2 3] times [1 0 1 2; 0 1 3 4], with the columns of W split over tp: draws who holds what, who
/// computes what, and where the parts are put together. Collective over the mesh.
void show_split_columns(const reigen::Mesh& mesh, std::ostream& out);

/// The same with the rows of W, and with them the columns of X, split over tp: what the ranks compute is summed.
void show_split_rows(const reigen::Mesh& mesh, std::ostream& out);

} // namespace split_matrix
