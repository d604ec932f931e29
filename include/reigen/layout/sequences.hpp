#pragma once

#include <reigen/layout/nested.hpp>
#include <reigen/layout/sequence.hpp>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A batch of equally long sequences as the rows of a token matrix, batch-major: row = sequence * length + position.
///
/// dp cuts the batch, cp each sequence by its layout, tp what rows are left. Stripes of more than one position are for
/// the striped layout alone; another with them is refused.
struct Sequences {
    Index batch = 1;
    Index length = 0;
    SequenceLayout layout = SequenceLayout::contiguous;
    Index stripe = 1;

    /// All of them, over the whole mesh.
    Index tokens() const { return detail::product_of_sizes(batch, length, "Sequences"); }

    /// Positions that ring rank `rank` of `ranks` holds of each sequence, in its order.
    Runs positions(int ranks, int rank) const { return sequence_runs(layout, length, ranks, rank, stripe); }

    /// The positions that this rank holds of each sequence. With rows over tp as well, it holds some of these rows.
    Runs positions(const Mesh& mesh) const { return positions(mesh.size(cp), mesh.rank(cp)); }

    /// One sequence over the ranks of the ring.
    Partition positions_partition(int ranks) const {
        std::vector<Runs> runs;
        for (int rank = 0; rank < ranks; ++rank)
            runs.push_back(positions(ranks, rank));
        return Partition::of_checked_runs(length, std::move(runs), false);
    }

    /// The sequences of which this rank holds some or all positions.
    Range local_batch(const Mesh& mesh) const { return balanced_range(batch, mesh.size(dp), mesh.rank(dp)); }

    /// The rows of the token matrix over the joint group of `axes`, for instance dp|cp or dp|cp|tp.
    Partition rows(const Mesh& mesh, Axes axes) const {
        require(contains(dp | cp | tp, axes), "Sequences: token rows over ", to_string(axes),
                ": want some of dp, cp and tp");
        require(batch >= 0 && length >= 0, "Sequences: ", batch, " sequences of ", length, " positions");
        const Axes outer = axes & (dp | cp);
        const Index all = tokens();
        const int batches = mesh.size(axes & dp);
        const int rings = mesh.size(axes & cp);
        std::vector<Runs> runs;
        for (int q = 0; q < mesh.size(outer); ++q) {
            const Range sequences = balanced_range(batch, batches, mesh.coordinate(axes & dp, outer, q));
            runs.push_back(rows_of(sequences, positions(rings, mesh.coordinate(axes & cp, outer, q))));
        }
        return refine(Partition::of_checked_runs(all, std::move(runs), false), mesh, outer, axes);
    }

  private:
    Runs rows_of(Range sequences, const Runs& positions) const {
        Runs rows;
        for (Index b = sequences.first; b < sequences.end(); ++b)
            rows.append(positions.shifted(b * length));
        return rows;
    }
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
