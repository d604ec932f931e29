#pragma once

#include <reigen/layout/parameter.hpp>

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Where a tensor holds what is not a finite number.
struct NonFinite {
    std::string tensor;
    Index elements = 0; // that are not finite, on that rank
    int rank = 0;       // of the mesh
    Index row = 0;      // global, of the first of them
    Index col = 0;
    double value = 0; // NaN or an infinity
};

/// "blocks.0.mlp.up.weight: 3 elements on rank 1, the first nan at row 7, column 130"
inline std::string to_string(const NonFinite& found) {
    return concat(found.tensor, ": ", found.elements, found.elements == 1 ? " element" : " elements", " on rank ",
                  found.rank, ", the first ", found.value, " at row ", found.row, ", column ", found.col);
}

/// Looks for NaNs and infinities in any number of tensors of one mesh: where a loss that has become NaN comes from.
///
///     NonFiniteSearch search(mesh);
///     search.add("hidden", h);
///     search.add(optimizer.parameters());                // values and gradients
///     for (const NonFinite& found : search.found())      // the same list on every rank
///
/// Cost        one look at each element; one all-gather of 4 numbers a tensor, in `found`
/// Collective  `add`: no; `found`: over the whole mesh, with the same tensors in the same order
class NonFiniteSearch {
  public:
    explicit NonFiniteSearch(const Mesh& mesh) : mesh_(mesh) {}

    template <ShardedLike X>
    void add(std::string name, const X& x) {
        look(std::move(name), x.spec(), x.strided());
    }

    template <class S>
    void add(std::span<const ParameterView<S>> parameters) {
        for (const ParameterView<S>& parameter : parameters) {
            look(parameter.name, parameter.spec(), parameter.value);
            look(parameter.name + ".gradient", parameter.spec(), parameter.gradient);
        }
    }

    template <class S>
    void add(const std::vector<ParameterView<S>>& parameters) {
        add(std::span<const ParameterView<S>>(parameters));
    }

    /// Of each tensor and rank that holds any, the first; in the order of the tensors, then of the ranks.
    std::vector<NonFinite> found() const {
        const Communicator& world = mesh_.world();
        world.agree("NonFiniteSearch", [&] { return std::vector<Field>{{"tensors", names_.size()}}; });
        std::vector<double> all(shares_.size() * std::size_t(world.size()));
        world.all_gather(shares_, all);
        std::vector<NonFinite> list;
        for (std::size_t tensor = 0; tensor < names_.size(); ++tensor)
            for (int rank = 0; rank < world.size(); ++rank) {
                const double* const share = &all[std::size_t(rank) * shares_.size() + numbers_a_tensor * tensor];
                if (share[0] > 0)
                    list.push_back({names_[tensor], Index(share[0]), rank, Index(share[1]), Index(share[2]), share[3]});
            }
        return list;
    }

  private:
    static constexpr std::size_t numbers_a_tensor = 4; // count, row, column, value

    template <class T>
    void look(std::string name, const ShardSpec& spec, Strided<T> local) {
        require(spec.mesh == mesh_, "NonFiniteSearch: ", name, " lies on another mesh");
        Index count = 0, row = 0, col = 0;
        double value = 0;
        for (Index i = 0; i < local.rows; ++i)
            for (Index j = 0; j < local.cols; ++j)
                if (const double here = double(local(i, j)); !std::isfinite(here) && count++ == 0) {
                    row = spec.row_runs()[i];
                    col = spec.col_runs()[j];
                    value = here;
                }
        names_.push_back(std::move(name));
        shares_.insert(shares_.end(), {double(count), double(row), double(col), value});
    }

    Mesh mesh_;
    std::vector<std::string> names_;
    std::vector<double> shares_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
