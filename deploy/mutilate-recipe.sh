#!/bin/sh
# Latency against rate by the recipe of mutilate's README: agents load a memcached, and a master that asks little measures it.
#
#   SERVER=cache1 AGENTS="m1 m2" RATES="50000 100000 200000" sh mutilate-recipe.sh out
#
# writes out/load.out, out/q000050000.out and so on, and out/curve.csv, a line for each rate. On m1 and m2 runs
# `mutilate -T 16 -A`; there and here PUMMEL_AGENT_TOKEN_FILE names a file with one word that all of them share.
# AGENTS="ssh://m1,m2" starts the agents for each run, and needs no word.
set -eu

: "${SERVER:?the server to measure is expected, host[:port]}"
: "${AGENTS:?agents are expected, host[:port] with blanks between them, or ssh://HOST,HOST}"
: "${RATES:?rates are expected, requests per second with blanks between them}"
out=${1:?a folder for the results is expected}

# The program, and what every run has in common.
pummel=${PUMMEL:-pummel}
seconds=${SECONDS_EACH:-30}
# Agents that are started have as many threads, and refuse more than they have CPUs.
threads=${THREADS:-16}
connections=${CONNECTIONS:-4}
measure_qps=${MEASURE_QPS:-1000}
records=${RECORDS:-10000}

mkdir -p "$out"
set --
for agent in $AGENTS; do
    set -- "$@" -a "$agent"
done

"$pummel" mutilate -s "$SERVER" -r "$records" --loadonly >"$out/load.out"
for rate in $RATES; do
    name=$(printf '%s/q%09d' "$out" "$rate")
    "$pummel" mutilate -s "$SERVER" -r "$records" --noload -B -T "$threads" -Q "$measure_qps" -D 4 -C 4 "$@" \
        -c "$connections" -q "$rate" -t "$seconds" --json "$name.json" >"$name.out"
done
"$pummel" table "$out"/q*.out >"$out/curve.csv"
