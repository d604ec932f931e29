#include <train_gpt/verify.hpp>

#include <train_gpt/training.hpp>

#include <support/first_rank.hpp>
#include <support/units.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>

namespace train_gpt {

Index verified_steps(const Options& options) {
    return std::min<Index>(20, options.steps);
}

std::vector<double> losses_on_one_rank(const reigen::Communicator& world, const Options& options,
                                       const Corpus& corpus) {
    return examples::numbers_of_first_rank(world, [&] {
        const reigen::Mesh alone;
        const auto training = make_training(options, alone, corpus);
        std::vector<double> losses;
        for (Index step = 0; step < verified_steps(options); ++step)
            losses.push_back(training->step(step).loss);
        return losses;
    });
}

double largest_relative_difference(std::span<const double> a, std::span<const double> b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = std::abs(a[i] - b[i]) / std::abs(b[i]);
        largest = std::isfinite(difference) ? std::max(largest, difference) : std::numeric_limits<double>::infinity();
    }
    return largest;
}

bool agrees_with_one_rank(std::ostream& out, std::span<const double> losses, std::span<const double> one_rank,
                          const Options& options) {
    const double allowed = options.dtype == "double" ? 1e-10 : 1e-4;
    const double difference = largest_relative_difference(losses.first(one_rank.size()), one_rank);
    const bool agrees = difference < allowed;
    out << "verify      the losses of the first " << one_rank.size() << " steps differ from those of one rank by "
        << examples::scientific_text(difference) << " at most (relative): " << (agrees ? "below " : "NOT below ")
        << examples::scientific_text(allowed) << '\n';
    return agrees;
}

} // namespace train_gpt
