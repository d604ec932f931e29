#!/usr/bin/env bash
# Three hosts on this machine, ranks that talk TCP, and what must hold there: the tests pass; when a wire is cut, or a
# rank killed, in the middle of a ring, every rank ends within the deadline and 5 s more, with an error; ranks that the
# launcher deals out to the hosts in turn are numbered one host after the other.
#
# Builds what it needs. Where the privileges for network namespaces lack, says so and does nothing: exit code 77.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../cmake/bootstrap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

deadline=4

reason=$(hosts_missing)
if [ -n "$reason" ]; then
    echo "network tests skipped: $reason"
    exit 77
fi

install_for library tests
configure -DREIGEN_BUILD_TESTS=ON
cmake --build "$build" --target test_comm_mpi test_attention_mpi test_matmul_mpi test_network_ring test_network_order
hosts_up

for name in comm attention matmul; do
    echo "== $name on three hosts"
    on_hosts 3 "$build/tests/$name/test_${name}_mpi" --gtest_brief=1
done

# expect_order WORDS [ASSIGNMENT]: what six ranks say that the launcher deals out to the hosts in turn.
expect_order() {
    local text
    text=$(on_hosts 6 ${2:+-x "$2"} "$build/tests/network/test_network_order")
    grep -qE "$1" <<<"$text" || { echo "$text" && fail "no line with \"$1\""; }
    echo "== ranks dealt out to hosts${2:+, $2}: $(grep -hE -m 1 "$1" <<<"$text")"
}

expect_order 'rank 1 .* the launcher.s rank 3$'
expect_order '^  tp=2  inside a machine$'
expect_order '^  cp=3  over 3 machines; a ring crosses between them 3 times$'
expect_order '^  tp=2  over 2 machines' REIGEN_RANK_ORDER=launched

# Starts the ring and waits until all ranks are at it.
start_ring() {
    log=$(mktemp)
    on_hosts 3 "$build/tests/network/test_network_ring" "$deadline" >"$log" 2>&1 &
    job=$!
    for ((tenths = 0; tenths < 300; ++tenths)); do
        [ "$(grep -c '^turning' "$log")" -eq 3 ] && return
        sleep 0.1
    done
    cat "$log"
    fail "the ring did not start within 30 s"
}

# Ranks of the ring that still live, on any host.
ranks_left() {
    local host pid
    for ((host = 0; host < hosts; ++host)); do
        for pid in $(ip netns pids "$mark-$host"); do
            [[ $(readlink "/proc/$pid/exe") == */test_network_ring ]] && echo "$pid"
        done
    done
    true
}

# expect_end WHAT WORDS: all ranks end in time, and say these words.
expect_end() {
    local started=$SECONDS
    while [ -n "$(ranks_left)" ] && [ $((SECONDS - started)) -le $((deadline + 5)) ]; do
        sleep 0.2
    done
    [ -z "$(ranks_left)" ] || { cat "$log" && fail "$1: ranks still run after $((SECONDS - started)) s"; }
    sleep 1
    grep -qE "$2" "$log" || { cat "$log" && fail "$1: no line with \"$2\""; }
    echo "== $1: all ranks ended within $((SECONDS - started)) s: $(grep -hE -m 1 "$2" "$log")"
}

start_ring
kill -9 "$(sed -n 's/^turning rank 1 process //p' "$log")"
expect_end "a rank is killed" 'rank 1 .*signal 9|\[rank [02] of 3\] .*waited'
status=0
wait "$job" || status=$?
[ "$status" -ne 0 ] || fail "a rank is killed: mpirun's exit code is 0"

# The launcher has lost a daemon of its own with the wire and may wait for it: only the ranks are ours.
start_ring
cut_wire 1
expect_end "a wire is cut" '\[rank [0-9] of 3\] .*waited [0-9.]+ s for rank'
