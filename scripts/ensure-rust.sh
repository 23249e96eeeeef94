#!/usr/bin/env bash
# Checks that cargo, a Rust new enough for this workspace, and a C linker are there; says how to get what is not.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)

how_to_get() {
    cat >&2 <<END
$1
pummel needs Rust $wanted or newer. Debian 12 packages an older one; rustup brings a current one into your home directory
(it is fetched by curl: apt-get install curl ca-certificates):

    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y
    . "\$HOME/.cargo/env"

With rustup already there: rustup update stable
END
    exit 1
}

for program in cargo rustc; do
    if ! command -v "$program" >/dev/null; then
        if [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/$program" ]; then
            echo "$program is installed but not in PATH; try: . \"${CARGO_HOME:-$HOME/.cargo}/env\"" >&2
            exit 1
        fi
        how_to_get "There is no $program in PATH."
    fi
done

version=$(rustc --version </dev/null 2>&1) || how_to_get "rustc does not run: $version"
found=$(printf '%s\n' "$version" | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
[ -n "$found" ] || how_to_get "rustc does not say its version: $version"
oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)
[ "$oldest" = "$wanted" ] || how_to_get "The Rust in PATH is $found."

if ! command -v cc >/dev/null; then
    echo "There is no C compiler, which Rust needs for linking; on Debian and Ubuntu: apt-get install gcc libc6-dev" >&2
    exit 1
fi
