#!/usr/bin/env bash
# Installs pummel: install.sh BINARY PREFIX LINK...
#
# Binary and links go to PREFIX/bin; man pages and shell completions, which the binary writes itself, below PREFIX/share.
set -euo pipefail

binary=$1
prefix=$2
shift 2

pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
mkdir "$pages/man" "$pages/completions"
"$binary" pages --man "$pages/man" --completions "$pages/completions"

install -D -m 755 "$binary" "$prefix/bin/pummel"
for name in "$@"; do
    if [ -e "$prefix/bin/$name" ] && [ "$(readlink "$prefix/bin/$name")" != pummel ]; then
        echo "$prefix/bin/$name is another program; left as it is (LINKS=no leaves out all links)." >&2
    else
        ln -sf pummel "$prefix/bin/$name"
    fi
done

for page in "$pages"/man/*.1; do
    install -D -m 644 "$page" "$prefix/share/man/man1/${page##*/}"
done
completions=$pages/completions
install -D -m 644 "$completions/pummel.bash" "$prefix/share/bash-completion/completions/pummel"
install -D -m 644 "$completions/_pummel" "$prefix/share/zsh/site-functions/_pummel"
install -D -m 644 "$completions/pummel.fish" "$prefix/share/fish/vendor_completions.d/pummel.fish"
echo "Installed pummel below $prefix."
