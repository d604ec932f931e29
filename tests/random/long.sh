#!/usr/bin/env bash
# 5,000 cases of each of the four random tests, other ones than the short run's: 20,000 in all. Builds them first.
#
#   tests/random/long.sh [CASES OF EACH]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/bootstrap.sh"

install_for library tests
configure -DREIGEN_BUILD_TESTS=ON
cmake --build "$build" --target test_random
REIGEN_RANDOM_FIRST=1000 REIGEN_RANDOM_CASES=${1:-5000} exec "$build/tests/random/test_random"
