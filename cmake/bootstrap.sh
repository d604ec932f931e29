# shellcheck shell=bash
# Sourced by examples/run.sh, tests/run.sh, bench/run.sh and .ci/run, after `set -eu`: installs what a purpose needs,
# configures and builds. Does nothing, and needs no network, when everything is there.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for the sourcing script
build=$root/build

# What each purpose needs, in Debian's and Ubuntu's names.
packages_for() {
    case $1 in
        library) echo g++ cmake ninja-build libeigen3-dev libopenmpi-dev openmpi-bin ;;
        examples) echo libcli11-dev ;;
        tests) echo libgtest-dev nlohmann-json3-dev ;;
        bench) echo libbenchmark-dev libcli11-dev ;;
        peers) echo libopenblas0-pthread ;;
        python_packages) echo python3 python3-venv ;;
        checks)
            echo clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19 shellcheck
            echo g++-aarch64-linux-gnu qemu-user googletest iproute2
            ;;
    esac
}

elsewhere="g++ 12 or clang 16 (or newer), CMake 3.25, Ninja, Eigen 3.4, an MPI 3.1 (optional), and CLI11 for the
examples, GoogleTest and nlohmann-json for the tests, Google Benchmark for the benchmarks"

# A tool counts as installed however it came here; a library where the package is.
is_installed() {
    case $1 in
        g++) command -v "${CXX:-c++}" ;;
        cmake) command -v cmake ;;
        ninja-build) command -v ninja ;;
        openmpi-bin) command -v mpirun ;;
        python3) command -v python3 ;;
        python3-venv) python3 -c 'import ensurepip, venv' 2>&1 ;;
        *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
    esac >/dev/null
}

# install_for PURPOSE...
install_for() {
    if ! command -v apt-get >/dev/null; then
        for tool in "${CXX:-c++}" cmake ninja; do
            command -v "$tool" >/dev/null || fail "$tool not found. Needed: $elsewhere"
        done
        return 0 # whether the libraries are there, configuring finds out
    fi
    local missing=() package
    for package in $(for purpose in "$@"; do packages_for "$purpose"; done | tr ' ' '\n' | sort -u); do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "as root, run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    echo "Installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq </dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null >/dev/null
}

# configure [CMAKE OPTION]...: the release preset, in build/
configure() {
    cmake -S "$root" --preset release --log-level=WARNING "$@" >/dev/null || fail "configuring failed. Needed: $elsewhere"
}

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc 2>/dev/null || echo 2)}

# Open MPI refuses more ranks than cores, and root, unless told; 4.x and 5.x look for different names.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
