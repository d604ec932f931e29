#pragma once

// One include for what needs MPI: `mpi_main` and `mpi_communicator`. Everything else is in <reigen/reigen.hpp>.

#include <reigen/comm/mpi.hpp>
