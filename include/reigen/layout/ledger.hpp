#pragma once

#include <reigen/layout/parameter.hpp>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Runs of many pieces are cut short: "0-1 6-7 8-9 ... (64 runs)".
inline std::string brief(const Runs& runs) {
    constexpr std::size_t shown = 4;
    if (runs.pieces().size() <= shown)
        return runs.to_string();
    Runs first;
    for (const Run& piece : runs.pieces().first(shown - 1))
        first.append(piece);
    return concat(first.to_string(), " ... (", runs.pieces().size(), " runs)");
}

/// "dp=2 x tp=2", or "" where no axis has more than one rank.
inline std::string sized_axes(const Mesh& mesh, Axes axes) {
    std::string text;
    for (const MeshAxis& entry : mesh.axes())
        if (contains(axes, entry.axis))
            text += concat(text.empty() ? "" : " x ", to_string(entry.axis), '=', entry.size);
    return text;
}

/// "rows over dp=2, columns over tp=2, summed over cp=2", or "on every rank".
inline std::string sized_placement(const Mesh& mesh, Placement p) {
    std::string text;
    const auto add = [&](const char* what, Axes axes) {
        if (const std::string over = sized_axes(mesh, axes); !over.empty())
            text += concat(text.empty() ? "" : ", ", what, " over ", over);
    };
    add("rows", p.rows);
    add("columns", p.cols);
    add("summed", p.partial);
    return text.empty() ? "on every rank" : text;
}

/// Ranks that hold the same part, and what they hold.
struct Holders {
    std::string ranks;
    Runs rows;
    Runs cols;

    std::string local_shape() const { return shape(rows.size(), cols.size()); }
};

inline std::string padded(const std::string& text, std::size_t width) {
    return text + std::string(width - text.size() + 3, ' ');
}

inline std::vector<Holders> holders(const ShardSpec& spec) {
    constexpr Axes all = dp | pp | cp | tp | ep;
    std::vector<Holders> result;
    for (int r = 0; r < spec.mesh.size(all); ++r) {
        const Runs& rows = spec.row_runs(all, r);
        const Runs& cols = spec.col_runs(all, r);
        bool known = false;
        for (Holders& h : result)
            if (!known && h.rows == rows && h.cols == cols) {
                h.ranks += concat(' ', r);
                known = true;
            }
        if (!known)
            result.push_back({concat(r), rows, cols});
    }
    return result;
}

} // namespace detail

/// Placement, global shape, and each rank's local shape and runs; the same text on every rank.
///
///     64x256 {; tp; }: columns over tp=2
///       rank 0   64x128   rows 0-63   columns 0-127
///       rank 1   64x128   rows 0-63   columns 128-255
inline std::string describe(const ShardSpec& spec) {
    std::string text = concat(shape(spec.rows(), spec.cols()), ' ', spec.placement, ": ",
                              detail::sized_placement(spec.mesh, spec.placement), '\n');
    const std::vector<detail::Holders> all = detail::holders(spec);
    std::size_t widths[3] = {};
    for (const detail::Holders& h : all) {
        widths[0] = std::max(widths[0], h.ranks.size());
        widths[1] = std::max(widths[1], h.local_shape().size());
        widths[2] = std::max(widths[2], detail::brief(h.rows).size());
    }
    for (const detail::Holders& h : all)
        text +=
            concat("  rank ", detail::padded(h.ranks, widths[0]), detail::padded(h.local_shape(), widths[1]), "rows ",
                   detail::padded(detail::brief(h.rows), widths[2]), "columns ", detail::brief(h.cols), '\n');
    return text;
}

template <ShardedLike X>
std::string describe(const X& x) {
    return describe(x.spec());
}

/// A list of tensors: the name of each, its axes, placement and global shape, and every rank's local shape and runs.
class ShapeLedger {
  public:
    void add(std::string name, const ShardSpec& spec) { entries_.push_back({std::move(name), describe(spec)}); }

    template <ShardedLike X>
    void add(std::string name, const X& x) {
        add(std::move(name), x.spec());
    }

    /// A parameter, with the axes over which its gradient is still to be summed.
    template <class S>
    void add(const ParameterView<S>& parameter) {
        const Axes sum = parameter.gradient_placement.partial;
        const std::string over = detail::sized_axes(parameter.mesh, sum);
        add(parameter.name + (over.empty() ? "" : " (gradient summed over " + over + ')'), parameter.spec());
    }

    std::string to_string() const {
        std::string text;
        for (const Entry& entry : entries_)
            text += entry.name + "  " + entry.description;
        return text;
    }

    void print(std::ostream& out) const { out << to_string(); }

  private:
    struct Entry {
        std::string name;
        std::string description;
    };

    std::vector<Entry> entries_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
