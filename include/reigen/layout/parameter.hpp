#pragma once

#include <reigen/layout/sharded.hpp>

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// One parameter and its gradient with the placements as run-time values, so that parameters of all kinds go into one
/// list: what optimizer, clipping, ledger and checkpoints work on. Looks at memory that a layer owns.
///
/// A gradient is divided as its parameter is; it may be partial over further axes, and is held in the type sums are
/// taken in.
template <class S>
struct ParameterView {
    std::string name;
    Placement placement;
    Placement gradient_placement;
    Index rows = 0;
    Index cols = 0;
    Partition row_partition;
    Partition col_partition;
    Strided<S> value;
    Strided<Accumulator<S>> gradient;
    Mesh mesh;

    ShardSpec spec() const { return {mesh, placement, row_partition, col_partition}; }

    /// Local places of the rows and columns of which this rank is the first holder along the split axes. Counting
    /// these alone, on the first rank along every other axis, counts each element of the parameter once.
    std::vector<Run> owned_rows() const { return owned(row_partition, mesh.rank(placement.rows)); }
    std::vector<Run> owned_cols() const { return owned(col_partition, mesh.rank(placement.cols)); }

  private:
    static std::vector<Run> owned(const Partition& partition, int rank) {
        return overlap(partition.runs(rank), partition.owned(rank)).first;
    }
};

namespace detail {

/// Throws where a list is not one of different parameters of one mesh whose elements lie in one piece: a table that
/// two layers share is listed once, or its gradient would be summed, counted and applied twice.
template <class S>
void require_parameters(std::span<const ParameterView<S>> parameters, const char* caller) {
    std::set<std::string_view> names;
    for (const auto& parameter : parameters) {
        require(names.insert(parameter.name).second, caller, ": parameter ", parameter.name, " is listed twice");
        require(parameter.mesh == parameters.front().mesh, caller, ": parameters ", parameters.front().name, " and ",
                parameter.name, " lie on different meshes");
        require(parameter.value.is_contiguous() && parameter.gradient.is_contiguous(), caller, ": the elements of ",
                parameter.name, " do not lie one after the other, row by row");
    }
}

} // namespace detail

/// The parameter `value` with the gradient that is accumulated for it.
template <class S, Placement Where, Placement GradientWhere>
ParameterView<S> parameter_view(std::string name, Sharded<S, Where>& value, Sharded<S, GradientWhere>& gradient) {
    static_assert(GradientWhere.rows == Where.rows && GradientWhere.cols == Where.cols,
                  "reigen: a gradient is split as its parameter is; only what it is partial over may differ");
    static_assert(!is_partial(Where), "reigen: a parameter is not a partial sum");
    static_assert(std::is_same_v<Stored<S, GradientWhere>, Accumulator<S>>,
                  "reigen: a gradient is held in the type sums are taken in; make it Sharded<float, ...>");
    require<ShapeError>(value.row_partition() == gradient.row_partition() &&
                            value.col_partition() == gradient.col_partition(),
                        "parameter ", name, ": the value is ", shape(value.rows(), value.cols()), ", the gradient ",
                        shape(gradient.rows(), gradient.cols()), " or divided differently");
    require(value.mesh() == gradient.mesh(), "parameter ", name, ": value and gradient lie on different meshes, ",
            to_string(value.mesh().axes()), " and ", to_string(gradient.mesh().axes()));
    return {
        std::move(name),       Where,           GradientWhere,      value.rows(), value.cols(), value.row_partition(),
        value.col_partition(), value.strided(), gradient.strided(), value.mesh()};
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
