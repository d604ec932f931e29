#pragma once

// Everything of the communication floor that needs MPI.

#include <reigen/comm/mpi_backend.hpp>
#include <reigen/comm/mpi_main.hpp>
