#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace bench {

/// How far a result is from the exact one: the largest difference, in units of the largest exact value. NaN where
/// something is not a number.
class LargestError {
  public:
    void add(long double result, long double exact) {
        const long double difference = std::abs(result - exact);
        const bool numbers = !std::isnan(difference) && !std::isnan(difference_);
        difference_ = numbers ? std::max(difference, difference_) : std::numeric_limits<long double>::quiet_NaN();
        exact_ = std::max(std::abs(exact), exact_);
    }

    double value() const { return double(exact_ > 0 ? difference_ / exact_ : difference_); }

  private:
    long double difference_ = 0;
    long double exact_ = 0;
};

} // namespace bench
