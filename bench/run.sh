#!/usr/bin/env bash
# Measures the kernels. Installs what is missing and builds first. The programs' own options, and what their columns mean:
# build/bench/kernels --help, build/bench/threads --help.
#
#   bench/run.sh kernels [OPTION OF kernels]...    against what one core can do, and against other libraries on one
#   bench/run.sh threads [OPTION OF threads]...    on several of OpenMP's threads, each on a core, against one
#
# kernels prints a table and writes build/bench/kernels.json and build/bench/kernels.png.
#
# OpenBLAS comes from the distribution; oneDNN, PyTorch and matplotlib come from PyPI into an environment of their own in
# the user's cache, which stays there. PyTorch takes 6 GB, most of it for CUDA, which is loaded but not used. What cannot
# be had is left out.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../cmake/bootstrap.sh"
environment=${XDG_CACHE_HOME:-$HOME/.cache}/reigen-bench

# install_packages NAME: what bench/kernels/requirements/NAME.txt lists, unless it is there as it is listed now. The
# file's first line says what it is.
install_packages() {
    local list=$root/bench/kernels/requirements/$1.txt installed=$environment/$1.txt
    cmp -s "$list" "$installed" && return 0
    echo "Installing $(sed -n '1s/^# //p' "$list") into $environment"
    { [ -x "$environment/bin/pip" ] || python3 -m venv "$environment"; } &&
        "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: -r "$list" &&
        cp "$list" "$installed"
}

# without NAME COUNTER: says that a peer could not be installed.
without() {
    echo "$(basename "$0"): no $1 could be installed; going on without $2" >&2
}

run_kernels() {
    case " $* " in *" --benchmark_out"*) fail "writes $build/bench/kernels.json; leave --benchmark_out to it" ;; esac
    install_for library bench peers python_packages
    local options=()
    install_packages onednn || without oneDNN vs_onednn
    configure -DREIGEN_BUILD_BENCH=ON -U 'ONEDNN_*' -DONEDNN_ROOT="$environment"
    cmake --build "$build" --target bench_kernels
    if install_packages torch; then
        options+=("--torch=$environment/bin/python")
    else
        without PyTorch vs_torch
    fi
    local results=$build/bench/kernels
    rm -f "$results.json"
    "$build/bench/kernels" "${options[@]}" --benchmark_out="$results.json" --benchmark_out_format=json "$@"
    [ -s "$results.json" ] || return 0 # --help and the like
    if install_packages matplotlib; then
        "$environment/bin/python" "$root/bench/kernels/plot.py" "$results.json" "$results.png"
    else
        without matplotlib "$results.png"
    fi
}

run_threads() {
    install_for library bench
    configure -DREIGEN_BUILD_BENCH=ON
    cmake --build "$build" --target bench_threads
    OMP_PROC_BIND=true OMP_PLACES=cores "$build/bench/threads" "$@"
}

case ${1:-} in
    kernels) shift && run_kernels "$@" ;;
    threads) shift && run_threads "$@" ;;
    *) fail "want the name of a benchmark: kernels or threads" ;;
esac
