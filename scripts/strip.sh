#!/usr/bin/env bash
# Takes the line tables out of a binary: strip.sh BINARY TO; they go to TO.debug, to which TO points.
# OBJCOPY names the objcopy of a binary for another architecture.
set -euo pipefail

binary=$1
to=$2

mkdir -p "$(dirname "$to")"
# One that was stripped before points to its tables already.
if readelf --sections --wide "$binary" 2>/dev/null | grep gnu_debuglink >/dev/null; then
    cp "$binary" "$to"
    exit
fi
"${OBJCOPY:-objcopy}" --only-keep-debug "$binary" "$to.debug"
"${OBJCOPY:-objcopy}" --strip-all --remove-section=.comment --add-gnu-debuglink="$to.debug" "$binary" "$to"
