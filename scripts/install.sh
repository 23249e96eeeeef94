#!/usr/bin/env bash
# Installs pummel: install.sh BINARY PREFIX LINK...
#
# Binary and links go to PREFIX/bin; man pages and shell completions, which the binary writes itself, below PREFIX/share.
# With DEBUG_FILE=yes the line tables, without which the binary is a fifth of its size, go to PREFIX/bin/.debug, where
# backtraces and debuggers look for them; otherwise they are left out. Without objcopy (binutils) the binary stays whole. RUNNER runs a binary for another
# architecture.
set -euo pipefail

binary=$1
prefix=$2
shift 2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/man" "$scratch/completions"
${RUNNER:-} "$binary" pages --man "$scratch/man" --completions "$scratch/completions"

if command -v objcopy >/dev/null; then
    "$(dirname "$0")/strip.sh" "$binary" "$scratch/pummel"
    if [ "${DEBUG_FILE:-no}" = yes ] && [ -e "$scratch/pummel.debug" ]; then
        install -D -m 644 "$scratch/pummel.debug" "$prefix/bin/.debug/pummel.debug"
    fi
else
    echo "There is no objcopy (binutils): the binary is installed with its line tables in it." >&2
    cp "$binary" "$scratch/pummel"
fi
install -D -m 755 "$scratch/pummel" "$prefix/bin/pummel"
for name in "$@"; do
    if [ -e "$prefix/bin/$name" ] && [ "$(readlink "$prefix/bin/$name")" != pummel ]; then
        echo "$prefix/bin/$name is another program; left as it is (LINKS=no leaves out all links)." >&2
    else
        ln -sf pummel "$prefix/bin/$name"
    fi
done

for page in "$scratch"/man/*.1; do
    install -D -m 644 "$page" "$prefix/share/man/man1/${page##*/}"
done
completions=$scratch/completions
for name in pummel "$@"; do
    install -D -m 644 "$completions/$name.bash" "$prefix/share/bash-completion/completions/$name"
    install -D -m 644 "$completions/_$name" "$prefix/share/zsh/site-functions/_$name"
    install -D -m 644 "$completions/$name.fish" "$prefix/share/fish/vendor_completions.d/$name.fish"
done
echo "Installed pummel below $prefix."
