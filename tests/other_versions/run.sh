#!/usr/bin/env bash
# The library on other versions than Debian's of what it stands on: MPICH, Open MPI 5 and Eigen 5. Each comes as a Python
# package into an environment of its own in the user's cache, and stays there; remove it to get the newest.
#
#   tests/other_versions/run.sh            all of them
#   tests/other_versions/run.sh NAME...    some of: mpich openmpi eigen
#
# Builds go to build-versions/. The last lines say how each went. Exit code 1 when one failed; else 77 when one
# could not be installed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/bootstrap.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/reigen-other-versions
work=$root/build-versions

# The Python package that carries a version, and what of it is wanted.
python_package() {
    case $1 in
        mpich) echo 'mpich>=4' ;;
        openmpi) echo 'openmpi>=5' ;;
        eigen) echo 'eigency>=5' ;;
        *) fail "no version $1; there are mpich, openmpi and eigen" ;;
    esac
}

# install_version NAME: into $cache/NAME. Never builds a package from source, which for an MPI takes very long.
install_version() {
    local environment=$cache/$1 package
    package=$(python_package "$1")
    [ ! -e "$environment/complete" ] || return 0
    rm -rf "$environment" &&
        (install_for python_packages) &&
        python3 -m venv "$environment" &&
        "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: "$package" &&
        touch "$environment/complete"
}

# The folder with Eigen's headers.
eigen_headers() { echo "$cache"/eigen/lib/python*/site-packages/eigency/eigen; }

# NAME and number, as its own files have it.
title_of() {
    case $1 in
        mpich) "$cache/mpich/bin/mpichversion" --version | sed -n 's/^MPICH Version: */MPICH /p' ;;
        openmpi) "$cache/openmpi/bin/mpirun" --version | sed -n 's/^mpirun (Open MPI) /Open MPI /p' ;;
        eigen) sed -n 's/.*EIGEN_VERSION_STRING "\(.*\)"/Eigen \1/p' "$(eigen_headers)/Eigen/Version" ;;
    esac
}

# configure_tree NAME [CMAKE OPTION]...: in build-versions/NAME; a warning is an error.
configure_tree() {
    local name=$1
    shift
    cmake -S "$root" -B "$work/$name" --preset release --log-level=WARNING -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
        -DREIGEN_BUILD_TESTS=ON -DREIGEN_BUILD_BENCH=OFF "$@"
}

run_tests() {
    local name=$1
    shift
    ctest --test-dir "$work/$name" -j "$CMAKE_BUILD_PARALLEL_LEVEL" --output-on-failure --no-tests=error \
        --no-label-summary "$@"
}

# Both MPIs share a tree, since most of a test never sees MPI: only what does is built again.
prove_mpi() {
    local bin=$cache/$1/bin
    configure_tree mpi -DREIGEN_BUILD_EXAMPLES=ON \
        -U 'MPI*' -DMPI_CXX_COMPILER="$bin/mpicxx" -DMPIEXEC_EXECUTABLE="$bin/mpiexec"
    cmake --build "$work/mpi" --target test_comm_mpi test_comm_mpi_backend test_comm_program test_layout_mpi \
        test_matmul_mpi test_attention_mpi test_failure_programs train_gpt
    run_tests mpi -L mpi \
        -R '^(comm|comm_mpi_backend|comm_program|layout|matmul|attention|failure_programs|train_gpt)\.'
}

prove_eigen() {
    configure_tree eigen -DREIGEN_BUILD_EXAMPLES=OFF \
        -DEigen3_DIR="$root/tests/other_versions" -DEIGEN_HEADERS="$(eigen_headers)"
    cmake --build "$work/eigen" --target test_core test_kernel test_matmul test_attention test_nn test_headers
    run_tests eigen -R '^(core|kernel|matmul|attention|nn)$|^headers\.'
}

prove() {
    case $1 in
        mpich | openmpi) prove_mpi "$1" ;;
        eigen) prove_eigen ;;
    esac
}

[ $# -gt 0 ] || set -- mpich openmpi eigen
for name in "$@"; do
    python_package "$name" >/dev/null
done
install_for library examples tests

results=()
code=0
for name in "$@"; do
    if ! install_version "$name"; then
        results+=("$name: could not be installed")
        [ "$code" -ne 0 ] || code=77
        continue
    fi
    title=$(title_of "$name")
    echo "== $title"
    started=$SECONDS
    # Not as a condition, in which `set -e` would not hold.
    set +e
    (set -e && prove "$name")
    status=$?
    set -e
    if [ "$status" -eq 0 ]; then
        results+=("$title: passed in $((SECONDS - started)) s")
    else
        results+=("$title: FAILED after $((SECONDS - started)) s")
        code=1
    fi
done

printf '== %s\n' "${results[@]}"
exit "$code"
