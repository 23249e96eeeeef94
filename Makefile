# pummel: what to type. `make` alone lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
# Names of the old tools, as links to pummel; LINKS=no leaves them out.
LINKS ?= yes
# DEBUG_FILE=yes installs the line tables too, in a file of their own.
DEBUG_FILE ?= no
OLD_NAMES = memaslap memcaslap mcperf mutilate

# Programs that the tests run, each with its Debian package.
TEST_NEEDS = memcached:memcached redis-server:redis-server saslpasswd2:sasl2-bin setpriv:util-linux \
	/usr/lib/*/sasl2/libplain.so:libsasl2-modules
# Where these cannot be installed, their tests say so and are left out.
TEST_WISHES = ip:iproute2 sshd:openssh-server

TARGET = $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
BINARY = $(TARGET)/release/pummel
QUICK = $(TARGET)/quick/pummel
# What `make static` and `make deb` are for: x86_64 or aarch64. Another one than this machine's is cross-built, by Debian's compiler
# for it, and writes its pages under qemu.
MACHINE := $(shell uname -m)
ARCH ?= $(MACHINE)
MUSL = $(ARCH)-unknown-linux-musl
STATIC = $(TARGET)/$(MUSL)/release/pummel
PACKAGES = $(TARGET)/packages/$(ARCH)
# The linker that comes with Rust makes one function of those that are the same, and writes relocations in few bytes.
LINKER = $(shell rustc --print sysroot)/lib/rustlib/$(shell rustc -vV | sed -n 's/^host: //p')/bin/gcc-ld
SMALLER = $(addprefix -C link-arg=,-B$(LINKER) -fuse-ld=lld -Wl,--icf=all,--pack-dyn-relocs=relr)
ifeq ($(ARCH),$(MACHINE))
STATIC_NEEDS = musl-gcc:musl-tools
else
GNU = $(ARCH)-linux-gnu
DEB_ARCH = $(if $(filter aarch64,$(ARCH)),arm64,amd64)
STATIC_NEEDS = $(GNU)-gcc:gcc-$(subst _,-,$(GNU)) /usr/$(GNU)/include/stdio.h:libc6-dev-$(DEB_ARCH)-cross qemu-$(ARCH):qemu-user
TRIPLE = $(subst -,_,$(MUSL))
CROSS = CC_$(TRIPLE)=$(GNU)-gcc CARGO_TARGET_$(shell echo $(TRIPLE) | tr a-z A-Z)_LINKER=$(GNU)-gcc
export OBJCOPY = $(GNU)-objcopy
export RUNNER = qemu-$(ARCH)
endif
SOURCES := Cargo.toml Cargo.lock $(shell find crates -type f)

.PHONY: help build static deb demo test check bench install uninstall clean

help:
	@echo "make demo                      quick build, run against a memcached of its own, show the report"
	@echo "make test                      every test, with what it needs installed"
	@echo "make check                     formatting, lints, floors, tests"
	@echo "make bench                     CPU, throughput and memory beside the floor, on this machine"
	@echo "make install PREFIX=/usr/local binary, links, man pages, completions (LINKS=no: without the links)"
	@echo "make uninstall PREFIX=/usr/local"
	@echo "make build                     the release build, as it is installed"
	@echo "make static                    one file without libraries, for any Linux (musl; ARCH=aarch64 or x86_64: for that one)"
	@echo "make deb                       Debian packages of it: pummel, and pummel-old-names with the links"
	@echo "make clean"

# A rule by time stamps, so that `make build && sudo make install` needs no Rust for root.
$(BINARY): $(SOURCES)
	@scripts/ensure-rust.sh
	cargo build --release --locked --package pummel
	@touch $@

build: $(BINARY)

# For a first look: without agents, which are half of all crates, and optimised where it measures. Its results say `profile: quick`.
$(QUICK): $(SOURCES)
	@scripts/ensure-rust.sh
	cargo build --profile quick --no-default-features --locked --package pummel
	@touch $@

# The C compiler of musl builds the cryptography.
$(STATIC): $(SOURCES)
	@scripts/ensure-rust.sh
	@scripts/ensure-packages.sh $(STATIC_NEEDS)
	@scripts/ensure-target.sh $(MUSL)
	$(CROSS) cargo rustc --release --locked --package pummel --bin pummel --target $(MUSL) -- $(SMALLER)
	@touch $@

static: $(STATIC)
	@scripts/strip.sh $(STATIC) $(PACKAGES)/pummel
	@ls -l $(PACKAGES)/pummel

deb: static
	@scripts/ensure-packages.sh dpkg-deb:dpkg
	scripts/deb.sh $(PACKAGES)/pummel $(PACKAGES) $(ARCH) $(OLD_NAMES)

# Status 3 says that memcached is missing and cannot be installed; the demo then uses the built-in server.
demo:
	@scripts/ensure-rust.sh
	@scripts/ensure-packages.sh memcached:memcached || [ $$? -eq 3 ]
	@$(MAKE) --no-print-directory $(QUICK)
	@scripts/demo.sh $(QUICK)

# In the development profile: it is optimised enough here, and it keeps the checks of arithmetic. One failure does not hide
# the rest. Most tests wait for a server or for a clock, so that three for each CPU run at one time.
test: export RUST_TEST_THREADS ?= $(shell echo $$(( 3 * $$(nproc) )))
test:
	@scripts/ensure-rust.sh
	@scripts/ensure-packages.sh $(TEST_NEEDS)
	@scripts/ensure-packages.sh $(TEST_WISHES) || true
	cargo test --locked --workspace --no-fail-fast

check:
	@scripts/ensure-rust.sh
	@scripts/ensure-packages.sh $(TEST_NEEDS)
	@scripts/ensure-packages.sh $(TEST_WISHES) || true
	cargo xtask ci

bench:
	@scripts/ensure-rust.sh
	@scripts/ensure-packages.sh memcached:memcached redis-server:redis-server setpriv:util-linux \
		taskset:util-linux
	cargo xtask bench

install: $(BINARY)
	DEBUG_FILE=$(DEBUG_FILE) scripts/install.sh $(BINARY) "$(DESTDIR)$(PREFIX)" $(if $(filter no,$(LINKS)),,$(OLD_NAMES))

uninstall:
	scripts/uninstall.sh "$(DESTDIR)$(PREFIX)" $(OLD_NAMES)

clean:
	cargo clean
