#include <reigen/comm/checked.hpp>
#include <reigen/comm/faulty.hpp>
#include <reigen/comm/threads.hpp>
#include <reigen/comm/trace.hpp>
#include <reigen/reigen.hpp>
#ifdef REIGEN_TEST_WITH_MPI
#include <reigen/mpi.hpp>
#endif

bool everything_again();

int main() {
    return everything_again() ? 0 : 1;
}
