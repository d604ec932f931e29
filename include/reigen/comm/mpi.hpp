#pragma once

// Everything of the communication floor that needs MPI.

#include <reigen/comm/mpi/backend.hpp>
#include <reigen/comm/mpi/main.hpp>
