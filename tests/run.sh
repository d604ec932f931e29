#!/usr/bin/env bash
# Builds and runs all tests; installs what is missing first. Arguments go to ctest: tests/run.sh -R attention
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/bootstrap.sh"

install_for library examples tests
configure -DREIGEN_BUILD_TESTS=ON -DREIGEN_BUILD_EXAMPLES=ON
cmake --build "$build" --target tests/all examples/all

export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$CMAKE_BUILD_PARALLEL_LEVEL}
exec ctest --test-dir "$build" --output-on-failure --no-tests=error --no-label-summary "$@"
