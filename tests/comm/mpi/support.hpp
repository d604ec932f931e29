#pragma once

#include <reigen/mpi.hpp>

#include "comm/values.hpp"

#include <gtest/gtest.h>

// The test main has initialised MPI, so every test here is a host program that owns MPI.

namespace mpi_backend_test {

using reigen::mpi_communicator;

/// All ranks are here and nobody has left anything in flight on the world.
inline void meet() {
    MPI_Barrier(MPI_COMM_WORLD);
}

inline void expect_sums(const Communicator& ranks, Index count) {
    auto values = small_values<double>(ranks.rank(), count);
    ranks.all_reduce(values);
    for (Index i = 0; i < count; ++i) {
        double want = 0;
        for (int r = 0; r < ranks.size(); ++r)
            want += small_value(r, i);
        ASSERT_EQ(values[std::size_t(i)], want) << "element " << i << " of " << count;
    }
}

} // namespace mpi_backend_test
