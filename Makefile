# muxutils: build, test, show, install.
#
#   make            build the tools (target/release)
#   make test       all tests; says what it needs, and installs it where it may
#   make lint       formatting, clippy, shell scripts, manual pages
#   make demo       the main job on real processes, in half a minute
#   make soak       the long rounds of the races
#   make install    PREFIX=/usr/local DESTDIR=
#   make uninstall  the same, undone

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo
SOAK    ?= 20

TOOLS := $(sort $(basename $(notdir $(wildcard crates/bin/*.rs))))
SHELL_SCRIPTS := .ci/run $(wildcard tests/*.sh)

# The commands that the tests use on real processes, and the packages that have them.
NEEDS := bash jq python3 script setpriv socat strace tmux unshare
LINT_NEEDS := mandoc shellcheck
APT_jq := jq
APT_mandoc := mandoc
APT_python3 := python3
APT_script := bsdutils
APT_setpriv := util-linux
APT_shellcheck := shellcheck
APT_socat := socat
APT_strace := strace
APT_tmux := tmux
APT_unshare := util-linux

.PHONY: all build release test lint demo soak install uninstall clean needs lint-needs
all: release

build:
	$(CARGO) build --locked

release:
	$(CARGO) build --locked --release

# One target a command: there, or installed, or a failure that names the package.
need-%:
	@command -v $* >/dev/null || { \
	  echo "make: needs $* (package $(or $(APT_$*),$*))" >&2; \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    { apt-get install -y -qq $(or $(APT_$*),$*) >/dev/null 2>&1 || \
	      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(or $(APT_$*),$*) >/dev/null; }; }; \
	  elif command -v brew >/dev/null; then \
	    brew install $(or $(APT_$*),$*); \
	  fi; \
	  command -v $* >/dev/null; }

needs: $(NEEDS:%=need-%)
lint-needs: $(LINT_NEEDS:%=need-%)

test: needs
	$(CARGO) test --workspace --locked

soak: needs
	MUXUTILS_SOAK=$(SOAK) $(CARGO) test --workspace --locked

lint: lint-needs
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	shellcheck $(SHELL_SCRIPTS)
	set -e; for page in man/*.[1-9]; do [ ! -e "$$page" ] || mandoc -T lint -W warning "$$page"; done

demo: build
	@tests/demo.sh "$${CARGO_TARGET_DIR:-target}/debug"

install: release
	install -d "$(DESTDIR)$(PREFIX)/bin"
	set -e; for tool in $(TOOLS); do \
	  install -m 755 "$${CARGO_TARGET_DIR:-target}/release/$$tool" "$(DESTDIR)$(PREFIX)/bin/$$tool"; done

uninstall:
	set -e; for tool in $(TOOLS); do rm -f "$(DESTDIR)$(PREFIX)/bin/$$tool"; done

clean:
	$(CARGO) clean
