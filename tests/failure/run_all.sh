#!/usr/bin/env bash
# Every fault in every operation, on threads and under mpirun: about two minutes on two cores. The tests proper run every
# fault and every operation, but not each with each under mpirun. Arguments go to the test: --gtest_filter=failing_mpi.*
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/bootstrap.sh"

cmake --build "$build" --target test_failure_programs
REIGEN_TEST_EVERY_FAILURE=1 exec "$build/tests/failure/test_failure_programs" "$@"
