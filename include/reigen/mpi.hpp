#pragma once

// One include for what needs MPI: `mpi_main` and `mpi_communicator`, and for what matters with it: `describe`, where ranks
// run. Everything else is in <reigen/reigen.hpp>.

#include <reigen/comm/describe.hpp>
#include <reigen/comm/mpi.hpp>
