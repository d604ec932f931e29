#pragma once

#include <reigen/comm/mesh.hpp>

#include <string>
#include <vector>

namespace examples {

/// The mesh that "dp=2,tp=2" describes on that many ranks: the axes dp, cp and tp in this order, each absent one of
/// size 1, and where tp is absent it takes the ranks that are left.
///
/// Throws  UsageError where the text is not of this form or its sizes do not multiply to the number of ranks.
std::vector<reigen::MeshAxis> mesh_axes(const std::string& text, int ranks);

} // namespace examples
