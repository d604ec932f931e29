#!/usr/bin/env bash
# Measures. Installs what is missing and builds first. The programs' own options, and what their columns mean:
# build/bench/kernels --help, and so on.
#
#   bench/run.sh kernels [OPTION OF kernels]...    against what one core can do, and against other libraries on one
#   bench/run.sh threads [OPTION OF threads]...    on several of OpenMP's threads, each on a core, against one
#   bench/run.sh communication [OPTION OF communication]...
#                                                  the collectives of two ranks against MPI's own
#   bench/run.sh overlap [OPTION OF overlap]...    what two ranks hide of their communication, through shared memory
#   bench/run.sh cluster [OPTION OF overlap]...    the same between two hosts on this machine, joined by wires of 1 and of
#                                                  10 Gbit/s: network namespaces, which need root
#
# kernels prints a table and writes build/bench/kernels.json and build/bench/kernels.png, communication and overlap
# likewise, cluster overlap_1gbit and overlap_10gbit. REIGEN_BENCH_RANKS: how many instead of two.
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

# refuse_output OPTION...: where the results go is not for the caller to say.
refuse_output() {
    case " $* " in *" --benchmark_out"*) fail "writes its results to $build/bench; leave --benchmark_out to it" ;; esac
}

# draw FOLDER RESULTS: RESULTS.png of RESULTS.json, by bench/FOLDER/plot.py.
draw() {
    [ -s "$2.json" ] || return 0 # --help and the like
    if install_packages matplotlib; then
        "$environment/bin/python" "$root/bench/$1/plot.py" "$2.json" "$2.png"
    else
        without matplotlib "$2.png"
    fi
}

# All libraries' memory is in huge pages where the system gives them, as our long Buffers always are.
run_kernels() {
    refuse_output "$@"
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
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1 \
        "$build/bench/kernels" "${options[@]}" --benchmark_out="$results.json" --benchmark_out_format=json "$@"
    draw kernels "$results"
}

run_threads() {
    install_for library bench
    configure -DREIGEN_BUILD_BENCH=ON
    cmake --build "$build" --target bench_threads
    OMP_PROC_BIND=true OMP_PLACES=cores "$build/bench/threads" "$@"
}

# MPI is not to suffer from memory that is fetched from the system anew for each long collective.
run_communication() {
    refuse_output "$@"
    install_for library bench python_packages
    configure -DREIGEN_BUILD_BENCH=ON
    cmake --build "$build" --target bench_communication
    local results=$build/bench/communication
    rm -f "$results.json"
    MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=268435456 \
        mpirun -n "${REIGEN_BENCH_RANKS:-2}" "$build/bench/communication" --benchmark_counters_tabular=true \
        --benchmark_out="$results.json" --benchmark_out_format=json "$@"
    draw communication "$results"
}

build_overlap() {
    install_for library bench examples python_packages
    configure -DREIGEN_BUILD_BENCH=ON -DREIGEN_BUILD_EXAMPLES=ON
    cmake --build "$build" --target bench_overlap
}

# measure_overlap RESULTS COMMAND... -- OPTION...: overlap under the command that starts its ranks.
measure_overlap() {
    local results=$1 start=()
    shift
    while [ "$1" != -- ]; do
        start+=("$1")
        shift
    done
    shift
    rm -f "$results.json"
    "${start[@]}" "$build/bench/overlap" --benchmark_counters_tabular=true --benchmark_out="$results.json" \
        --benchmark_out_format=json "$@"
    draw overlap "$results"
}

run_overlap() {
    refuse_output "$@"
    build_overlap
    measure_overlap "$build/bench/overlap" mpirun -n "${REIGEN_BENCH_RANKS:-2}" -- "$@"
}

# A rate limit at both ends of each wire; what a bucket holds passes at once.
run_cluster() {
    refuse_output "$@"
    # shellcheck source=tests/network/hosts.sh
    . "$root/tests/network/hosts.sh"
    local reason host rate
    reason=$(hosts_missing)
    [ -z "$reason" ] || fail "cluster: $reason"
    command -v tc >/dev/null || fail "cluster: tc (iproute2) is missing"
    build_overlap
    hosts=2
    hosts_up
    for rate in 1 10; do
        for ((host = 0; host < hosts; ++host)); do
            tc -n "$mark-$host" qdisc replace dev "$wire" root tbf rate "${rate}gbit" burst 128kb latency 20ms
        done
        echo "== $rate Gbit/s"
        measure_overlap "$build/bench/overlap_${rate}gbit" on_hosts 2 -- "$@"
    done
}

case ${1:-} in
    kernels) shift && run_kernels "$@" ;;
    threads) shift && run_threads "$@" ;;
    communication) shift && run_communication "$@" ;;
    overlap) shift && run_overlap "$@" ;;
    cluster) shift && run_cluster "$@" ;;
    *) fail "want the name of a benchmark: kernels, threads, communication, overlap or cluster" ;;
esac
