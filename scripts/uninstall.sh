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
rm -f "$prefix/bin/pummel" "$prefix"/share/man/man1/pummel.1 "$prefix"/share/man/man1/pummel-*.1
rm -f "$prefix/share/bash-completion/completions/pummel" "$prefix/share/zsh/site-functions/_pummel"
rm -f "$prefix/share/fish/vendor_completions.d/pummel.fish"
