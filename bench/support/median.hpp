#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

inline double median(std::vector<double> samples) {
    const auto middle = samples.begin() + std::ptrdiff_t(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

} // namespace bench
