#pragma once

#include <ctime>

namespace bench {

/// Seconds of processor time this thread has used. Unlike time on the wall it leaves out what other programs took, so
/// that a busy machine still gives ratios that mean something.
inline double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Thread time that one call takes.
template <class Work>
double seconds_of(Work&& work) {
    const double start = thread_seconds();
    work();
    return thread_seconds() - start;
}

} // namespace bench
