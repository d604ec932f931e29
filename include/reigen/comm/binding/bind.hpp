#pragma once

#include <reigen/comm/binding/system.hpp>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <cstdlib>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// What this process was given when the ranks of its machine divided their cores.
struct Share {
    Cores own;
    Cores of; // theirs together; none where nothing was divided
};

inline Share& share_of_process() {
    static Share& share = *new Share;
    return share;
}

/// OpenMP counts the cores when the program is loaded, before they are divided. Where nobody says how many threads it
/// takes, it then takes as many as the rank has cores.
inline void let_openmp_count_again() {
#ifdef _OPENMP
    if (std::getenv("OMP_NUM_THREADS") == nullptr)
        omp_set_num_threads(omp_get_num_procs());
#endif
}

/// Keeps the calling thread, and those that it starts from now on, to its share. Where the system refuses, all stays as
/// it is.
inline void take_share(Share share) {
    const cpu_set_t own = set_of(share.own);
    if (sched_setaffinity(0, sizeof own, &own) != 0)
        return;
    share_of_process() = std::move(share);
    let_openmp_count_again();
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
