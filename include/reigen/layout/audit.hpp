#pragma once

#include <reigen/comm/mesh.hpp>
#include <reigen/core/random.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// What is recomputed of a result: `rows` of its rows, drawn with replacement, the same on every
/// rank; each of them once where there are no more.
struct AuditOptions {
    Index rows = 8;
    std::uint64_t seed = 0; // another one each time draws other rows
};

/// How far a result is from what a second computation in double says. The same on every rank.
///
/// The error of an element is |computed - reference| over the sum of the magnitudes of the terms that make the element
/// up, so that cancellation does not look like a fault: a few times the scalar's epsilon where all is well, infinite
/// where one of both is not a number.
struct AuditReport {
    Index elements = 0; // compared, over all ranks
    double error = 0;   // the largest
    int rank = 0;       // of the mesh: where it is
    Index row = -1;     // global
    Index col = -1;

    bool within(double tolerance) const { return elements > 0 && error <= tolerance; }
};

struct NamedAudit {
    std::string name;
    AuditReport report;
};

/// "512 elements, largest error 1.2e-07 at row 3, column 17 on rank 1"
inline std::string to_string(const AuditReport& report) {
    std::string text = concat(report.elements, " elements, largest error ", report.error);
    return report.row < 0 ? text
                          : concat(text, " at row ", report.row, ", column ", report.col, " on rank ", report.rank);
}

namespace detail {

/// One rank's share of an audit, element by element.
class AuditTally {
  public:
    void compare(double computed, double reference, double magnitude, Index row, Index col) {
        ++mine_.elements;
        const double relative = std::abs(computed - reference) / magnitude;
        const double error = computed == reference     ? 0 // infinities included
                             : std::isfinite(relative) ? relative
                                                       : std::numeric_limits<double>::infinity();
        if (error > mine_.error) {
            mine_.error = error;
            mine_.row = row;
            mine_.col = col;
        }
    }

    /// The largest error of all ranks. Collective over the mesh.
    AuditReport report(const Mesh& mesh) const {
        const Communicator& world = mesh.world();
        const std::array<double, 4> mine = {double(mine_.elements), mine_.error, double(mine_.row), double(mine_.col)};
        std::vector<double> all(mine.size() * std::size_t(world.size()));
        world.all_gather(mine, all);
        AuditReport report;
        for (int rank = 0; rank < world.size(); ++rank) {
            const double* const share = &all[mine.size() * std::size_t(rank)];
            report.elements += Index(share[0]);
            if (share[1] > report.error) {
                report.error = share[1];
                report.rank = rank;
                report.row = Index(share[2]);
                report.col = Index(share[3]);
            }
        }
        return report;
    }

  private:
    AuditReport mine_;
};

/// Global rows to look at; where more are wanted than there are, each of them once.
inline std::vector<Index> audited_rows(const AuditOptions& options, Index rows) {
    require(options.rows >= 0, "audit: ", options.rows, " rows");
    const RandomStream random(options.seed, 0x61756469);
    std::vector<Index> drawn;
    for (Index i = 0; i < std::min(options.rows, rows); ++i)
        drawn.push_back(options.rows >= rows ? i : std::min(rows - 1, Index(random.uniform(i) * double(rows))));
    return drawn;
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
