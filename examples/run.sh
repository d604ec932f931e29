#!/usr/bin/env bash
# Trains a small GPT, split over two ranks in this process, and checks its first losses against one rank. Installs what
# is missing and builds first.
#
#   examples/run.sh [OPTION OF train_gpt]...            ranks as threads, two unless --ranks says otherwise
#   examples/run.sh --mpi 4 [OPTION OF train_gpt]...    four processes under mpirun
#
# The program's own options: build/examples/train_gpt --help
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/bootstrap.sh"

processes=
ranks=(--ranks 2)
options=()
while [ $# -gt 0 ]; do
    case $1 in
        --mpi) processes=${2:?"--mpi wants the number of processes"} && shift ;;
        --mpi=*) processes=${1#*=} ;;
        --ranks | --ranks=*) ranks=() && options+=("$1") ;;
        *) options+=("$1") ;;
    esac
    shift
done

install_for library examples
configure -DREIGEN_BUILD_EXAMPLES=ON
cmake --build "$build" --target train_gpt

if [ -n "$processes" ]; then
    exec mpirun -n "$processes" "$build/examples/train_gpt" --verify "${options[@]}"
fi
exec "$build/examples/train_gpt" "${ranks[@]}" --verify "${options[@]}"
