#pragma once

#include <reigen/core/memory.hpp>
#include <reigen/kernel/packet.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace reigen::inline REIGEN_INSTRUCTION_SET {
namespace detail {

/// Threads that a kernel may divide its work over: OpenMP's, where the file is compiled for it (OMP_NUM_THREADS,
/// omp_set_num_threads), else the calling one.
inline Index thread_count() {
#ifdef _OPENMP
    return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

/// Threads over which so many multiply-adds are worth dividing: each then has 0.1 ms of them at the peak of an AVX-512
/// core.
template <class T>
Index threads_for(double multiply_adds) {
    constexpr double worth = double(1 << 19) * lanes<T>;
    return std::clamp<Index>(Index(std::min(multiply_adds / worth, 1e6)), 1, std::max<Index>(thread_count(), 1));
}

/// The first exception of several threads, for the one that waits for them.
class FirstException {
  public:
    template <class Work>
    void keep_from(Work work) noexcept {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!first_)
                first_ = std::current_exception();
        }
    }

    void rethrow() const {
        if (first_)
            std::rethrow_exception(first_);
    }

  private:
    std::mutex mutex_;
    std::exception_ptr first_;
};

/// Calls work(part) for part = 0, ..., parts - 1, each on a thread of its own where there are several. The first is the
/// caller's: it alone polls. Scratch memory of the others is entered in the caller's account.
///
/// Throws  what a part throws, when all have ended
template <class Work>
void for_each_part(Index parts, Work work) {
#ifdef _OPENMP
    if (parts > 1) {
        FirstException failure;
        const auto account = memory_account();
#pragma omp parallel for num_threads(int(parts)) schedule(static, 1)
        for (Index part = 0; part < parts; ++part) {
            thread_memory_account = account;
            failure.keep_from([&] { work(part); });
        }
        return failure.rethrow();
    }
#endif
    for (Index part = 0; part < parts; ++part)
        work(part);
}

/// Calls work(part, unit) for unit = 0, ..., units - 1 on as many threads as there are parts: each takes the next unit
/// when it has done its last. A unit may therefore wait for earlier ones, which somebody has begun.
template <class Work>
void for_each_unit(Index parts, Index units, Work work) {
    std::atomic<Index> next = 0;
    for_each_part(parts, [&](Index part) {
        for (Index unit = next++; unit < units; unit = next++)
            work(part, unit);
    });
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
