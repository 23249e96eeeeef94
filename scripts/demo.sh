#!/usr/bin/env bash
# Runs the demo of a build, demo.sh BINARY, against a memcached of its own on a free loopback port, and ends that server whatever happens.
set -euo pipefail

pummel=$1
scratch=$(mktemp -d)
server=

end_server() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap end_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts memcached on a port that the kernel picks, and sets `port` when it says which.
start_memcached() {
    local as=()
    if [ "$(id -u)" = 0 ]; then
        chown nobody "$scratch"
        as=(-u nobody)
    fi
    MEMCACHED_PORT_FILENAME=$scratch/port memcached "${as[@]}" -l 127.0.0.1 -p -1 -U 0 -t 1 -m 256 </dev/null &
    server=$!
    for _ in $(seq 100); do
        port=$(sed -n 's/^TCP INET: //p' "$scratch/port" 2>/dev/null || true)
        [ -z "$port" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "memcached does not start." >&2
    exit 1
}

if command -v memcached >/dev/null; then
    start_memcached
    echo "$(memcached -V | head -n 1) listens on 127.0.0.1:$port"
    "$pummel" demo -s "127.0.0.1:$port"
else
    echo "Without memcached, the demo runs against pummel's built-in server; its figures say nothing about memcached."
    "$pummel" demo
fi
