#pragma once

#include <reigen/kernel/cross_entropy.hpp>
#include <reigen/layout/sharded.hpp>
#include <reigen/nn/residual.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

struct CrossEntropyOptions {
    double smoothing = 0;              // spread evenly over the classes that are not the label
    std::int32_t ignored_label = -100; // tokens so labelled count for nothing
};

/// Cross entropy of logits whose classes are split over tp, as the mean over all labelled tokens of the global batch.
/// No rank ever has a row of logits whole.
///
/// Shapes      logits, dlogits [tokens, vocabulary] {dp|cp; tp; }; labels: one for each of this rank's rows
/// Cost        three all-reduces: of three numbers over dp|cp before anything else, of one and of three numbers a token
///             over tp; and of one number over dp|cp
/// Collective  over the mesh of the logits
/// Throws      ArgumentError on every rank where any rank has a label that is neither a class nor ignored, ShapeError
///             where any has another number of labels than of rows
template <class S>
class VocabParallelCrossEntropy {
  public:
    using Logits = Sharded<S, Placement{token_axes, tp, Axes::none}>;

    struct Saved {
        Logits logits; // the gradient takes their place
        std::vector<std::int32_t> labels;
        std::vector<double> lse; // of each row over all classes
        Index counted = 0;       // labelled tokens of the global batch
    };

    explicit VocabParallelCrossEntropy(const CrossEntropyOptions& options = {}) : options_(options) {
        require(options.smoothing >= 0 && options.smoothing < 1, "cross_entropy: smoothing ", options.smoothing,
                ", want it in [0, 1)");
    }

    /// The mean loss, the same on every rank; 0 where no token counts.
    Forward<double, Saved> forward(Logits logits, std::span<const std::int32_t> labels) const {
        require(options_.smoothing == 0 || logits.cols() >= 2, "cross_entropy: smoothing ", options_.smoothing,
                " over ", logits.cols(), " classes; it goes to those that are not the label");
        const Index counted = count_labels(logits, labels);
        std::vector<double> lse = row_maxima(logits);
        const std::vector<RowSums> sums = row_sums(logits, labels, lse);
        double loss = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            lse[i] += std::log(sums[i].exponentials);
            if (counts(labels[i]))
                loss += loss_of_row(lse[i], sums[i], logits.cols());
        }
        logits.mesh()[token_axes].all_reduce(std::span(&loss, 1));
        return {counted > 0 ? loss / double(counted) : 0,
                Saved{std::move(logits), {labels.begin(), labels.end()}, std::move(lse), counted}};
    }

    /// The gradient of `dloss` times the mean. With micro-batches of unlike counts, dloss = counted / counted in all.
    Logits backward(Saved saved, double dloss = 1) const {
        const double factor = saved.counted > 0 ? dloss / double(saved.counted) : 0;
        for (Index i = 0; i < Index(saved.labels.size()); ++i)
            turn_into_gradient(saved, i, factor);
        return std::move(saved.logits);
    }

  private:
    /// What the ranks of tp add up for one token: of exp(logit - largest), the label's logit, and of all logits.
    struct RowSums {
        double exponentials = 0, label_logit = 0, logits = 0;
    };

    bool counts(std::int32_t label) const { return label != options_.ignored_label; }

    /// Over the global batch. Every rank learns of wrong labels, and throws, before any other message.
    Index count_labels(const Logits& logits, std::span<const std::int32_t> labels) const {
        const Index rows = logits.strided().rows;
        const bool fits = Index(labels.size()) == rows;
        std::array<std::int64_t, 3> found = {0, 0, !fits}; // labels that count, labels out of range, ranks amiss
        for (const std::int32_t label : labels)
            if (counts(label))
                ++found[label < 0 || label >= logits.cols() ? 1 : 0];
        logits.mesh()[token_axes].all_reduce(found);
        require<ShapeError>(fits, "cross_entropy: ", labels.size(), " labels for ", rows, " rows");
        require<ShapeError>(found[2] == 0, "cross_entropy: the number of labels is not that of rows on ", found[2],
                            " other ranks");
        require(found[1] == 0, "cross_entropy: ", found[1], " labels of the batch are neither in [0, ", logits.cols(),
                ") nor the ignored ", options_.ignored_label);
        return Index(found[0]);
    }

    static std::vector<double> row_maxima(const Logits& logits) {
        const Strided<const S> z = logits.strided();
        std::vector<double> largest;
        for (Index i = 0; i < z.rows; ++i)
            largest.push_back(double(row_maximum(z.row(i), z.cols)));
        logits.mesh()[tp].all_reduce(largest, Reduction::max);
        return largest;
    }

    std::vector<RowSums> row_sums(const Logits& logits, std::span<const std::int32_t> labels,
                                  std::span<const double> largest) const {
        const Strided<const S> z = logits.strided();
        std::vector<RowSums> sums(labels.size());
        for (Index i = 0; i < z.rows; ++i) {
            RowSums& row = sums[std::size_t(i)];
            row.exponentials = double(row_sum_of_exponentials(z.row(i), z.cols, S(largest[std::size_t(i)])));
            if (const auto column = logits.col_runs().find(labels[std::size_t(i)]))
                row.label_logit = double(z(i, *column));
            if (options_.smoothing > 0)
                row.logits = double(row_sum(z.row(i), z.cols));
        }
        logits.mesh()[tp].all_reduce(std::span(reinterpret_cast<double*>(sums.data()), 3 * sums.size()));
        return sums;
    }

    /// What smoothing wants of each class that is not the label.
    double wanted_of_others(Index classes) const {
        return options_.smoothing > 0 ? options_.smoothing / double(classes - 1) : 0;
    }

    /// lse - (1 - a) label_logit - a/(classes - 1) (all other logits)
    double loss_of_row(double lse, const RowSums& sums, Index classes) const {
        const double others = options_.smoothing > 0 ? sums.logits - sums.label_logit : 0;
        return lse - (1 - options_.smoothing) * sums.label_logit - wanted_of_others(classes) * others;
    }

    /// Logits of row i become factor (softmax - wanted).
    void turn_into_gradient(Saved& saved, Index i, double factor) const {
        const Strided<S> z = saved.logits.strided();
        const std::int32_t label = saved.labels[std::size_t(i)];
        if (!counts(label)) {
            std::fill_n(z.row(i), z.cols, S(0));
            return;
        }
        const double others = wanted_of_others(saved.logits.cols());
        softmax_gradient_row(z.row(i), z.cols, S(saved.lse[std::size_t(i)]), S(others), S(factor));
        if (const auto column = saved.logits.col_runs().find(label))
            z(i, *column) -= S(factor * (1 - options_.smoothing - others));
    }

    CrossEntropyOptions options_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
