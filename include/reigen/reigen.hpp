#pragma once

// Everything but MPI; for ranks under mpirun include <reigen/mpi.hpp> as well.

#include <reigen/core/buffer.hpp>
#include <reigen/core/error.hpp>
#include <reigen/core/instruction_set.hpp>
#include <reigen/core/memory.hpp>
#include <reigen/core/poll.hpp>
#include <reigen/core/random.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/core/types.hpp>
#include <reigen/core/version.hpp>
