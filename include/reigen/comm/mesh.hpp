#pragma once

#include <reigen/comm/communicator.hpp>

#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// One axis of a mesh and its number of ranks.
struct MeshAxis {
    Axes axis = Axes::none;
    int size = 1;
    bool operator==(const MeshAxis&) const = default;
};

/// "dp=2 x tp=2".
inline std::string to_string(std::span<const MeshAxis> axes) {
    std::string text;
    for (const MeshAxis& entry : axes)
        text += concat(text.empty() ? "" : " x ", to_string(entry.axis), '=', entry.size);
    return text;
}

/// The ranks of a communicator arranged along named axes, the last one fastest. A handle, cheap to copy.
///
///     Mesh(world, {{Axes::dp, 2}, {Axes::tp, 3}}):            tp 0  1  2
///                                                      dp 0      0  1  2
///                                                      dp 1      3  4  5
///     mesh[tp] is {0 1 2} or {3 4 5}, mesh[dp] {0 3}, {1 4} or {2 5}, mesh[dp | tp] all, each in this order.
///
/// Ranks keep the numbers that the communicator gives them. Where these follow the machines, as in the world of
/// `mpi_main` and in any `by_node`, fast axes lie inside machines: `describe(mesh)` says which do.
///
/// Axes that the mesh does not have are of size 1.
class Mesh {
  public:
    /// One rank, no axes.
    Mesh() : Mesh(Communicator(), std::span<const MeshAxis>()) {}

    /// Makes a group for every set of axes. Collective over `world`.
    ///
    /// Throws  ArgumentError where the sizes do not multiply to the ranks of `world`, or an axis is repeated or unknown
    Mesh(const Communicator& world, std::span<const MeshAxis> axes) {
        check(world, axes);
        world.agree("Mesh", [&] { return std::vector<Field>{{"axes", to_string(axes)}}; });
        auto state = std::make_shared<State>();
        state->world = world;
        state->axes.assign(axes.begin(), axes.end());
        for (int set = 1; set < 32; ++set)
            if (const Axes group = state->present(Axes(set)); group == Axes(set))
                state->groups.emplace(group, group_of(*state, group));
        state_ = std::move(state);
    }
    Mesh(const Communicator& world, std::initializer_list<MeshAxis> axes)
        : Mesh(world, std::span(axes.begin(), axes.size())) {}
    Mesh(const Communicator& world, const std::vector<MeshAxis>& axes) : Mesh(world, std::span<const MeshAxis>(axes)) {}

    const Communicator& world() const { return state_->world; }
    const std::vector<MeshAxis>& axes() const { return state_->axes; }

    /// The ranks that differ from this one in these axes only, numbered in mesh order. Named after those of the axes
    /// that have more than one rank: "dp|tp".
    const Communicator& operator[](Axes axes) const {
        const Axes group = state_->present(axes);
        return group == Axes::none ? state_->alone : state_->groups.at(group);
    }

    int size(Axes axes) const { return state_->size(axes); }

    /// This rank's number in the group over these axes.
    int rank(Axes axes) const { return state_->number(world().rank(), axes); }

    /// The number over the axes `part` of member `group_rank` of this rank's group over `group`; where `part` has axes
    /// outside `group`, all members share this rank's place along them.
    int coordinate(Axes part, Axes group, int group_rank) const {
        require(group_rank >= 0 && group_rank < size(group), "coordinate: rank ", group_rank, " of ", size(group),
                " over ", to_string(group));
        return state_->number(state_->member(world().rank(), group, group_rank), part);
    }

    /// The ranks of the world in each group over these axes, in its order; groups in the order of their first ranks.
    std::vector<std::vector<int>> groups(Axes axes) const {
        std::vector<std::vector<int>> result;
        for (int first = 0; first < world().size(); ++first) {
            if (state_->number(first, axes) != 0)
                continue;
            std::vector<int>& group = result.emplace_back();
            for (int member = 0; member < size(axes); ++member)
                group.push_back(state_->member(first, axes, member));
        }
        return result;
    }

    /// Whether both arrange the same ranks in the same way.
    bool operator==(const Mesh& other) const {
        if (state_ == other.state_)
            return true;
        const bool both_alone = world().size() == 1 && other.world().size() == 1;
        return axes() == other.axes() && (both_alone || world() == other.world());
    }

  private:
    struct State {
        Communicator world;
        Communicator alone;
        std::vector<MeshAxis> axes;
        std::map<Axes, Communicator> groups;

        /// Those of the axes that have more than one rank.
        Axes present(Axes wanted) const {
            Axes found = Axes::none;
            for (const MeshAxis& entry : axes)
                if (entry.size > 1)
                    found |= entry.axis & wanted;
            return found;
        }

        int size(Axes wanted) const {
            int product = 1;
            for (const MeshAxis& entry : axes)
                product *= contains(wanted, entry.axis) ? entry.size : 1;
            return product;
        }

        /// The number over `wanted` of a rank of the world.
        int number(int world_rank, Axes wanted) const {
            int result = 0;
            int below = 1;
            for (auto entry = axes.rbegin(); entry != axes.rend(); ++entry) {
                if (contains(wanted, entry->axis)) {
                    result += below * (world_rank % entry->size);
                    below *= entry->size;
                }
                world_rank /= entry->size;
            }
            return result;
        }

        /// The rank of the world that has `group_rank` over `group` and stands elsewhere where `world_rank` stands.
        int member(int world_rank, Axes group, int group_rank) const {
            int result = 0;
            int below = 1;
            for (auto entry = axes.rbegin(); entry != axes.rend(); ++entry) {
                int& source = contains(group, entry->axis) ? group_rank : world_rank;
                result += below * (source % entry->size);
                below *= entry->size;
                if (&source == &group_rank)
                    group_rank /= entry->size;
                world_rank /= entry->size;
            }
            return result;
        }
    };

    static void check(const Communicator& world, std::span<const MeshAxis> axes) {
        Axes seen = Axes::none;
        Index product = 1;
        for (const MeshAxis& entry : axes) {
            require(count(entry.axis) == 1 && contains(dp | pp | cp | tp | ep, entry.axis), "Mesh: \"",
                    to_string(entry.axis), "\" (", int(entry.axis), ") is not one axis");
            require(disjoint(seen, entry.axis), "Mesh: axis ", to_string(entry.axis), " is given twice");
            require(entry.size >= 1, "Mesh: axis ", to_string(entry.axis), " of size ", entry.size);
            seen |= entry.axis;
            if (__builtin_mul_overflow(product, entry.size, &product))
                product = std::numeric_limits<Index>::max();
        }
        require(product == world.size(), "Mesh: ", axes.empty() ? "no axes" : to_string(axes), " makes ", product,
                " ranks, the communicator has ", world.size());
    }

    static Communicator group_of(const State& state, Axes group) {
        const Communicator& world = state.world;
        if (state.size(group) == world.size())
            return world.named(to_string(group));
        const Axes others = dp | pp | cp | tp | ep;
        return world.split(state.number(world.rank(), others - group), state.number(world.rank(), group),
                           to_string(group));
    }

    std::shared_ptr<const State> state_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
