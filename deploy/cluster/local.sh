#!/bin/sh
# A Redis cluster of three masters, each with a replica, on the loopback interface of this machine, for runs of pummel.
#
#   deploy/cluster/local.sh start [PORT]     six servers at PORT (7101) to PORT + 5; returns when each knows all others
#   deploy/cluster/local.sh stop [PORT]      ends them, and removes what they stored
#
#   pummel run -s 127.0.0.1:7101 --cluster
#
# The servers are those of redis-server, or of REDIS_SERVER and REDIS_CLI, such as valkey-server and valkey-cli.
set -eu

server=${REDIS_SERVER:-redis-server}
cli=${REDIS_CLI:-redis-cli}
first=${2:-7101}
directory=${TMPDIR:-/tmp}/pummel-cluster-$first
ports=$(seq "$first" $((first + 5)))

start() {
    mkdir "$directory"
    for port in $ports; do
        mkdir "$directory/$port"
        "$server" --port "$port" --bind 127.0.0.1 --dir "$directory/$port" --cluster-enabled yes \
            --cluster-config-file nodes.conf --cluster-node-timeout 1000 --appendonly no --save '' \
            --repl-diskless-sync-delay 0 --logfile log --daemonize yes --pidfile "$directory/$port/pid" >/dev/null
    done
    for port in $ports; do
        wait_until "the server at port $port answers" answers "$port"
    done
    # shellcheck disable=SC2046
    "$cli" --cluster create $(printf '127.0.0.1:%s ' $ports) --cluster-replicas 1 --cluster-yes >/dev/null
    for port in $ports; do
        wait_until "the server at port $port knows all others" is_whole "$port"
    done
    echo "pummel run -s 127.0.0.1:$first --cluster"
}

answers() {
    [ "$("$cli" -p "$1" ping 2>/dev/null)" = PONG ]
}

# Whether the cluster is up as the server at a port sees it, with six nodes in its map, and the server has its data.
is_whole() {
    "$cli" -p "$1" cluster info | grep -q '^cluster_state:ok' &&
        [ "$("$cli" -p "$1" cluster slots | grep -c '^127\.0\.0\.1$')" -ge 6 ] &&
        "$cli" -p "$1" info replication | grep -q -e '^role:master' -e '^master_link_status:up'
}

# Waits until a command succeeds, 20 s at most: wait_until WORDS COMMAND...
wait_until() {
    words=$1
    shift
    for _ in $(seq 200); do
        if "$@"; then
            return
        fi
        sleep 0.1
    done
    echo "not so after 20 s: $words" >&2
    exit 1
}

stop() {
    for port in $ports; do
        if [ -f "$directory/$port/pid" ]; then
            kill "$(cat "$directory/$port/pid")" 2>/dev/null || true
        fi
    done
    rm -rf "$directory"
}

case ${1:-} in
start) start ;;
stop) stop ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
