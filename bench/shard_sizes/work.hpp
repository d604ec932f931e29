#pragma once

#include <reigen/comm/mesh.hpp>

#include <memory>
#include <string>

namespace shard_sizes {

using reigen::Index;

enum class Kind { column, row, mlp };

/// One row of the table: what is computed, on how many ranks of tp.
struct Case {
    Kind kind;
    Index tokens;
    Index width;
    int ranks;

    /// Columns of the column product, rows of the row product, hidden features of the MLP.
    Index wide() const { return 4 * width; }

    /// Of all ranks together, in one run.
    double flops() const;

    /// "mlp/tokens:512/width:1024/tp:2".
    std::string name() const;
};

/// A case set up on its ranks. Every run is the same work on the same data.
class Work {
  public:
    virtual ~Work() = default;

    /// Collective over the mesh it was made on.
    virtual void run() = 0;
};

/// Collective over the mesh, whose tp has as many ranks as it likes: one rank gives the work to compare with.
std::unique_ptr<Work> make_work(const Case& which, const reigen::Mesh& mesh);

} // namespace shard_sizes
