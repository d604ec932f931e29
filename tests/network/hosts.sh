# shellcheck shell=bash
# Sourced: three hosts on one machine. Each is a network namespace with a host name of its own, and a wire (veth) to a
# switch (a bridge in a fourth namespace). Ranks in different ones share no memory that MPI would find: they talk TCP.
#
#   hosts_up            makes them; hosts_down, also called on exit, ends what still runs there and takes them away
#   on_hosts P ARGS...  mpirun from the first host: rank r on host r mod 3
#   cut_wire HOST       takes the link of a host down

hosts=3
mark=rg$$
wire=eth0

host_address() { echo "10.77.$(($$ % 250)).$(($1 + 1))"; }

# Why there can be no hosts here, if so.
hosts_missing() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "making network namespaces needs root"
    elif ! command -v ip >/dev/null || ! command -v unshare >/dev/null; then
        echo "ip (iproute2) or unshare (util-linux) is missing"
    elif ! ip netns add "$mark-try" 2>/dev/null; then
        echo "this system lets nobody make a network namespace"
    else
        ip netns del "$mark-try"
    fi
}

hosts_up() {
    local host
    trap hosts_down EXIT
    ip netns add "$mark-switch"
    ip -n "$mark-switch" link add switch type bridge
    ip -n "$mark-switch" link set switch up
    for ((host = 0; host < hosts; ++host)); do
        ip netns add "$mark-$host"
        ip -n "$mark-$host" link set lo up
        ip link add "$wire" netns "$mark-$host" type veth peer name "port$host" netns "$mark-switch"
        ip -n "$mark-switch" link set "port$host" master switch up
        ip -n "$mark-$host" addr add "$(host_address "$host")/24" dev "$wire"
        ip -n "$mark-$host" link set "$wire" up
    done
    agent=$(mktemp)
    # mpirun calls it as: AGENT ADDRESS COMMAND...; the last number of the address is the host.
    cat >"$agent" <<AGENT
#!/bin/sh
address=\$1
shift
host=\$((\${address##*.} - 1))
exec ip netns exec $mark-\$host unshare --uts sh -c "hostname host\$host; \$*"
AGENT
    chmod +x "$agent"
}

hosts_down() {
    local host pid
    for ((host = 0; host < hosts; ++host)); do
        for pid in $(ip netns pids "$mark-$host" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null || true
        done
        ip netns del "$mark-$host" 2>/dev/null || true
    done
    ip netns del "$mark-switch" 2>/dev/null || true
    rm -f "${agent:-}"
}

on_hosts() {
    local ranks=$1 list="" rank
    shift
    for ((rank = 0; rank < ranks; ++rank)); do
        list+="${list:+,}$(host_address $((rank % hosts))):1"
    done
    ip netns exec "$mark-0" unshare --uts sh -c "hostname host0; exec \"\$@\"" sh \
        mpirun -n "$ranks" --host "$list" --map-by node --mca plm_rsh_agent "$agent" \
        --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$wire" --mca oob_tcp_if_include "$wire" "$@"
}

cut_wire() { ip -n "$mark-switch" link set "port$1" down; }
