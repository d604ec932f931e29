#pragma once

#include <reigen/comm/mesh.hpp>
#include <reigen/layout/nested.hpp>
#include <reigen/layout/placement.hpp>

#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// The size of one side of a global matrix, or how it is divided. A size alone is divided evenly over whatever axes
/// cut that side.
class Extent {
  public:
    Extent(Index n) : partition_(Partition::whole(n)), divide_(true) {}
    Extent(Partition partition) : partition_(std::move(partition)) {}

    Partition over(const Mesh& mesh, Axes axes) const {
        return divide_ ? refine(partition_, mesh, Axes::none, axes) : partition_;
    }

  private:
    Partition partition_;
    bool divide_ = false;
};

/// Everything about a sharded matrix but its numbers: the mesh, the placement, and who holds which rows and columns.
struct ShardSpec {
    Mesh mesh;
    Placement placement;
    Partition row_partition;
    Partition col_partition;

    ShardSpec() = default;

    ShardSpec(const Mesh& mesh_, Placement placement_, const Extent& rows, const Extent& cols)
        : mesh(mesh_),
          placement(placement_),
          row_partition(rows.over(mesh_, placement_.rows)),
          col_partition(cols.over(mesh_, placement_.cols)) {
        check("rows", row_partition, placement.rows);
        check("columns", col_partition, placement.cols);
        detail::product_of_sizes(this->rows(), this->cols(), "a sharded matrix");
    }

    bool operator==(const ShardSpec&) const = default;

    Index rows() const { return row_partition.size(); }
    Index cols() const { return col_partition.size(); }

    /// What this rank holds.
    const Runs& row_runs() const { return row_partition.runs(mesh.rank(placement.rows)); }
    const Runs& col_runs() const { return col_partition.runs(mesh.rank(placement.cols)); }
    Index local_rows() const { return row_runs().size(); }
    Index local_cols() const { return col_runs().size(); }

    /// What member `q` of this rank's joint group over `group` holds.
    const Runs& row_runs(Axes group, int q) const {
        return row_partition.runs(mesh.coordinate(placement.rows, group, q));
    }
    const Runs& col_runs(Axes group, int q) const {
        return col_partition.runs(mesh.coordinate(placement.cols, group, q));
    }

  private:
    void check(const char* side, const Partition& partition, Axes axes) const {
        require<ShapeError>(partition.ranks() == mesh.size(axes), side, " over ", to_string(axes),
                            ": the partition is for ", partition.ranks(), " ranks, the mesh has ", mesh.size(axes));
    }
};

inline ShardSpec transpose(const ShardSpec& spec) {
    ShardSpec turned = spec;
    turned.placement = transpose(spec.placement);
    std::swap(turned.row_partition, turned.col_partition);
    return turned;
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
