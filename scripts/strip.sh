#!/usr/bin/env bash
# Takes the line tables out of a binary: strip.sh BINARY TO; they go to TO.debug, to which TO points.
set -euo pipefail

binary=$1
to=$2

mkdir -p "$(dirname "$to")"
objcopy --only-keep-debug "$binary" "$to.debug"
objcopy --strip-all --add-gnu-debuglink="$to.debug" "$binary" "$to"
