#!/usr/bin/env bash
# Makes sure that Rust can build for a platform: ensure-target.sh TARGET
set -euo pipefail

target=$1

if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    exit 0
fi
if ! command -v rustup >/dev/null; then
    echo "The Rust in PATH has no library for $target, and there is no rustup to fetch it." >&2
    exit 1
fi
rustup target add "$target"
