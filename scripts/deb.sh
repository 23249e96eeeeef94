#!/usr/bin/env bash
# Makes the Debian packages of a static binary: deb.sh BINARY FOLDER ARCHITECTURE OLD_NAME...; ARCHITECTURE is uname's word.
#
# `pummel` has the program, its pages, its completions, the unit of an agent, which is not enabled, and the dashboard with a compose
# file that shows it, below /usr/share/pummel. `pummel-old-names`
# has the links under the names of the old tools. The packages depend on the sources alone where SOURCE_DATE_EPOCH is set;
# otherwise they bear the date of the last commit. RUNNER runs a binary for another architecture.
set -euo pipefail

binary=$(realpath "$1")
folder=$2
machine=$3
shift 3
old_names=("$@")
cd "$(dirname "$0")/.."

if readelf --dynamic "$binary" 2>/dev/null | grep -q NEEDED; then
    echo "$binary needs shared libraries; the packages take the static one (make static)." >&2
    exit 1
fi
version=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml | head -n 1)
case $machine in
    x86_64) architecture=amd64 ;;
    aarch64) architecture=arm64 ;;
    *)
        echo "No Debian architecture is known for $machine; x86_64 and aarch64 are." >&2
        exit 1
        ;;
esac
# Who builds a package is not in it, unless that is wanted: the same sources make the same bytes everywhere.
maintainer=${DEB_MAINTAINER:-"The authors of pummel <pummel@packages.invalid>"}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
date=$(date --utc --date="@$SOURCE_DATE_EPOCH" --rfc-email)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What each package has to say of itself, below its root: license and changelog.
describe() {
    local root=$1 name=$2 doc=$1/usr/share/doc/$2
    install -D -m 644 /dev/stdin "$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: pummel

Files: *
Copyright: The authors of pummel
License: MIT or Apache-2.0

License: MIT
$(sed 's/^$/./; s/^/ /' LICENSE-MIT)

License: Apache-2.0
 On Debian systems the text of this license is in /usr/share/common-licenses/Apache-2.0.
END
    install -D -m 644 /dev/stdin "$doc/changelog" <<END
$name ($version) unstable; urgency=medium

  * The changes of this version are in CHANGELOG.md of the sources.

 -- $maintainer  $date
END
    gzip -9n "$doc/changelog"
}

# Packs what lies below a root; the fields of its control file come from standard input.
pack() {
    local root=$1 name=$2
    find "$root" -type d -exec chmod 755 {} +
    mkdir "$root/DEBIAN"
    {
        echo "Package: $name"
        echo "Version: $version"
        echo "Maintainer: $maintainer"
        echo "Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)"
        echo "Section: net"
        echo "Priority: optional"
        cat
    } >"$root/DEBIAN/control"
    (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$folder" >/dev/null
}

program() {
    local root=$scratch/pummel
    scripts/install.sh "$binary" "$root/usr" >/dev/null
    gzip -9n "$root"/usr/share/man/man1/*.1
    mkdir -p "$root/usr/share/zsh/vendor-completions"
    mv "$root"/usr/share/zsh/site-functions/* "$root/usr/share/zsh/vendor-completions/"
    rmdir "$root/usr/share/zsh/site-functions"
    sed 's|/usr/local/bin|/usr/bin|' deploy/systemd/pummel-agent.service |
        install -D -m 644 /dev/stdin "$root/lib/systemd/system/pummel-agent.service"
    install -D -m 644 deploy/grafana/pummel.json "$root/usr/share/pummel/grafana/pummel.json"
    # The sources are not there: the image of the memcached beside it runs the static program of the package.
    sed -e 's|-f deploy/grafana/|-f /usr/share/pummel/grafana/|' \
        -e '/^    build:$/,/^      dockerfile:/c\    image: memcached:1.6\n    entrypoint: [/usr/bin/pummel]\n    volumes: ["/usr/bin/pummel:/usr/bin/pummel:ro"]' \
        deploy/grafana/compose.yml | install -D -m 644 /dev/stdin "$root/usr/share/pummel/grafana/compose.yml"
    # Rust links a static program for amd64 that may lie anywhere in memory, which looks like a library to lintian, and for arm64
    # one that may not.
    local tag=shared-library-lacks-prerequisites
    [ "$architecture" = amd64 ] || tag=statically-linked-binary
    install -D -m 644 /dev/stdin "$root/usr/share/lintian/overrides/pummel" <<END
# The program is static, so that the same bytes run everywhere.
pummel: $tag [usr/bin/pummel]
END
    describe "$root" pummel
    pack "$root" pummel <<END
Architecture: $architecture
Suggests: pummel-old-names, memcached, redis-server
Description: load generator and benchmark for memcached and RESP servers
 pummel sends requests to memcached, Redis or Valkey, as fast as they answer
 or at a rate of choice. It tells how long they took from the moment when each
 was due, with 95 % intervals for quantiles and rates.
END
}

old_names() {
    local root=$scratch/pummel-old-names name
    mkdir -p "$root/usr/bin" "$root/usr/share/man/man1"
    ${RUNNER:-} "$binary" pages --completions "$scratch/completions"
    for name in "${old_names[@]}"; do
        ln -s pummel "$root/usr/bin/$name"
        case $name in memcaslap) page=memaslap ;; *) page=$name ;; esac
        ln -s "pummel-$page.1.gz" "$root/usr/share/man/man1/$name.1.gz"
        install -D -m 644 "$scratch/completions/$name.bash" "$root/usr/share/bash-completion/completions/$name"
        install -D -m 644 "$scratch/completions/_$name" "$root/usr/share/zsh/vendor-completions/_$name"
        install -D -m 644 "$scratch/completions/$name.fish" "$root/usr/share/fish/vendor_completions.d/$name.fish"
    done
    describe "$root" pummel-old-names
    pack "$root" pummel-old-names <<END
Architecture: all
Depends: pummel (= $version)
Conflicts: libmemcached-tools
Description: pummel under the names of older load generators
 Links to pummel as mutilate, mcperf, memaslap and memcaslap: under each of
 these names it follows the command line of that program and prints its
 report.
END
}

mkdir -p "$folder"
program
old_names
ls -l "$folder"/*.deb
