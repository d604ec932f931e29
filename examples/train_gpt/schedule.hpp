#pragma once

#include <train_gpt/options.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace train_gpt {

/// The learning rate of a step: a straight rise over the warm-up, then half a cosine down to a tenth.
struct Schedule {
    double highest = 0;
    Index warm_up = 0;
    Index steps = 0;

    double operator()(Index step) const {
        if (step < warm_up)
            return highest * double(step + 1) / double(warm_up + 1);
        const double progress = double(step - warm_up) / double(std::max<Index>(1, steps - warm_up));
        return highest * (0.55 + 0.45 * std::cos(std::numbers::pi * progress));
    }
};

inline Schedule schedule(const Options& options) {
    return {options.learning_rate, options.warm_up, options.steps};
}

} // namespace train_gpt
