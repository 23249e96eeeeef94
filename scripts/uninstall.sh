#!/usr/bin/env bash
# Takes away what install.sh installed: uninstall.sh PREFIX LINK...
set -euo pipefail

prefix=$1
shift

for name in "$@"; do
    if [ "$(readlink "$prefix/bin/$name" || true)" = pummel ]; then
        rm -f "$prefix/bin/$name"
    fi
done
rm -f "$prefix/bin/pummel" "$prefix/bin/.debug/pummel.debug"
rmdir "$prefix/bin/.debug" 2>/dev/null || true
rm -f "$prefix"/share/man/man1/pummel.1 "$prefix"/share/man/man1/pummel-*.1
for name in pummel "$@"; do
    rm -f "$prefix/share/bash-completion/completions/$name" "$prefix/share/zsh/site-functions/_$name"
    rm -f "$prefix/share/fish/vendor_completions.d/$name.fish"
done
