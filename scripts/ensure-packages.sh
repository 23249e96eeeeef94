#!/usr/bin/env bash
# Makes sure that programs are installed: ensure-packages.sh PROGRAM:PACKAGE...
#
# A PROGRAM with a slash is a file, or a pattern that some file has to match.
#
# Installs the Debian packages of those that are missing, without starting the services that come with them. Exit status:
# 0 all programs are there; 3 some are missing and cannot be installed (no root, or no apt-get), which it says.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
export PATH="$PATH:/usr/sbin:/sbin"

is_there() {
    case "$1" in
    */*) compgen -G "$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing=()
for pair in "$@"; do
    is_there "${pair%%:*}" || missing+=("${pair#*:}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "Missing, and there is no apt-get to install it: ${missing[*]}" >&2
    exit 3
fi
if [ "$(id -u)" != 0 ]; then
    echo "Missing; as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 3
fi

# Debian starts a package's service unless this file says no (status 101). What was there before comes back.
policy=/usr/sbin/policy-rc.d
saved=$policy.saved-by-pummel
mark="# Written by pummel's scripts/ensure-packages.sh"

restore_policy() {
    if [ -e "$saved" ] || [ -L "$saved" ]; then
        mv -f "$saved" "$policy"
    elif grep -qsF "$mark" "$policy"; then
        rm -f "$policy"
    fi
}

forbid_services() {
    restore_policy # what a run left behind that was killed
    trap restore_policy EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [ -e "$policy" ] || [ -L "$policy" ]; then
        mv "$policy" "$saved"
    fi
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
}

install_missing() {
    apt-get install -y --no-install-recommends "${missing[@]}" </dev/null
}

echo "Installing: ${missing[*]} (their services are not started)"
forbid_services
# Lists are fetched when there are none, and once more when they turn out to be out of date.
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
    apt-get update </dev/null
    install_missing
else
    install_missing || { apt-get update </dev/null && install_missing; }
fi
