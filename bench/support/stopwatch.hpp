#pragma once

#include <chrono>
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

/// Time on the wall that one call takes, for work on several threads.
template <class Work>
double wall_seconds_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace bench
