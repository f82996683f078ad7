# muxutils: build, test, show, install.
#
#   make            build the tools (target/release)
#   make test       all tests; says what it needs, and installs it where it may
#   make lint       formatting, clippy, shell scripts, manual pages
#   make demo       the main job on real processes, in half a minute
#   make soak       the long rounds of the races, and 10,000 of detach, scan, verify, reap
#   make fuzz       FUZZ_SECONDS=600 of random input for each reader of what others write
#   make bench      what the tools cost beside what they stand in for; writes the README's table
#                   (PARTS="start reap": only these, and no table)
#   make test-agents  whether the released agents take the command lines that resume-id prints
#   make man        manual pages and completions again, after a change of a command line
#   make install    PREFIX=/usr/local DESTDIR=
#   make uninstall  the same, undone
#   make dist       a tarball that installs on a machine without Rust

CARGO   ?= cargo
SOAK    ?= 20
ROUNDS  ?= 500
FUZZ_SECONDS ?= 600
TARGET  := $${CARGO_TARGET_DIR:-target}
BIN     := $(TARGET)/release

TOOLS := $(sort $(basename $(notdir $(filter-out %/build.rs,$(wildcard crates/bin/*.rs)))))
SHELL_SCRIPTS := .ci/run $(wildcard tests/*.sh tests/*/*.sh)

# The commands that the tests use on real processes, and the packages that have them.
NEEDS := bash fish jq parallel ps python3 script setpriv socat sqlite3 ssh sshd strace tmux unshare zsh
LINT_NEEDS := mandoc shellcheck
# What the bench runs beside the tools. Two more come from the registries of npm and pip.
BENCH_NEEDS := daemonize fuser inotifywait jq lsof npm pgrep pip3 ps python3 setsid start-stop-daemon tmux valgrind
APT_fuser := psmisc
APT_inotifywait := inotify-tools
APT_jq := jq
APT_mandoc := mandoc
APT_pgrep := procps
APT_pip3 := python3-pip
APT_ps := procps
APT_python3 := python3
APT_script := bsdutils
APT_setpriv := util-linux
APT_setsid := util-linux
APT_shellcheck := shellcheck
APT_socat := socat
APT_ssh := openssh-client
APT_sshd := openssh-server
APT_start-stop-daemon := dpkg
APT_strace := strace
APT_tmux := tmux
APT_unshare := util-linux

FUZZ_TARGETS := $(sort $(basename $(notdir $(wildcard crates/fuzz/targets/*.rs))))

.PHONY: all build release test test-agents bench bench-needs lint demo soak fuzz man dist clean needs lint-needs
all: release

build:
	$(CARGO) build --locked

release:
	$(CARGO) build --locked --release

# One target a command: there, or installed, or a failure that names the package. No package is to
# start a service (RUNLEVEL), and a command may be one that is not on a user's PATH (sshd).
need-%: export RUNLEVEL := 1
need-%: export PATH := $(PATH):/usr/sbin
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

# About three quarters of an hour on two cores: half an hour for the races, and a quarter for
# $(ROUNDS) times 20 rounds of the tools one after the other.
soak: needs
	MUXUTILS_SOAK=$(SOAK) $(CARGO) test --workspace --locked
	MUXUTILS_SOAK=$(ROUNDS) $(CARGO) test --locked --release --test soak rounds -- --nocapture

# Two at a time. The versions are those that the tools are built with; what each target has said is
# in its log, and an input with which it failed is in crates/fuzz/artifacts.
fuzz: need-cargo-fuzz need-nightly
	cp Cargo.lock crates/fuzz/Cargo.lock
	$(CARGO) +nightly fuzz build --fuzz-dir crates/fuzz
	$(MAKE) -j2 --keep-going $(FUZZ_TARGETS:%=fuzz-%)

fuzz-%: FUZZ := crates/fuzz
fuzz-%:
	@mkdir -p $(FUZZ)/corpus/$* $(FUZZ)/logs
	@$(CARGO) +nightly fuzz run --fuzz-dir $(FUZZ) $* $(FUZZ)/corpus/$* $(FUZZ)/seeds/$* -- \
	  -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -dict=$(FUZZ)/seeds/json.dict \
	  >$(FUZZ)/logs/$*.log 2>&1 || { tail -n 40 $(FUZZ)/logs/$*.log >&2; exit 1; }
	@echo "fuzz-$*: $$(tail -n 1 $(FUZZ)/logs/$*.log)"

need-cargo-fuzz:
	@command -v cargo-fuzz >/dev/null || { echo "make: needs cargo-fuzz (cargo install cargo-fuzz)" >&2; exit 1; }

need-nightly:
	@$(CARGO) +nightly --version >/dev/null 2>&1 || { echo "make: needs a nightly compiler (rustup toolchain install nightly)" >&2; exit 1; }

# The agents' own command lines, installed from their registry into a folder of the target's; not
# part of the tests, since they come from outside and change.
test-agents: build need-npm need-tmux
	tests/agents.sh "$(TARGET)/debug"

# Ratios, all in one run, and the table in README.md again. Fails where a limit is missed. What is
# measured in instructions needs no quiet machine, the rest does.
bench: release bench-needs
	tests/bench/bench.py "$(BIN)" "$(TARGET)/bench" $(PARTS)

bench-needs: $(BENCH_NEEDS:%=need-%)
	@mkdir -p "$(TARGET)/bench"
	@[ -e "$(TARGET)/bench/node_modules/tree-kill" ] || \
	  npm install --prefix "$(TARGET)/bench" --no-audit --no-fund --loglevel=error tree-kill@1.2.2 >/dev/null || \
	  echo "make: no tree-kill: its registry does not answer" >&2
	@[ -e "$(TARGET)/bench/python/psutil" ] || \
	  pip3 install --quiet --disable-pip-version-check --root-user-action=ignore --target "$(TARGET)/bench/python" psutil==7.2.1 || \
	  echo "make: no psutil: its registry does not answer" >&2

lint: lint-needs
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path crates/fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	shellcheck $(SHELL_SCRIPTS)
	set -e; for page in man/*.[1-9]; do [ ! -e "$$page" ] || mandoc -T lint -W warning "$$page"; done

demo: build
	@tests/demo.sh "$(TARGET)/debug"

man:
	MUXUTILS_BLESS=1 $(CARGO) test --locked --test docs -- pages completions

# What the files are and where they go.
include crates/bin/install.mk
install: release

# One folder with all that is installed, the licence, and install.mk as its Makefile.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
HOST    = $(shell rustc -vV | sed -n 's/^host: //p')
dist: PACK := muxutils-$(VERSION)-$(HOST)
dist: release
	rm -rf "$(TARGET)/dist/$(PACK)"
	install -d "$(TARGET)/dist/$(PACK)/bin" "$(TARGET)/dist/$(PACK)/man"
	install -m 755 $(TOOLS:%="$(BIN)/%") "$(TARGET)/dist/$(PACK)/bin"
	install -m 644 man/*.[1-9] "$(TARGET)/dist/$(PACK)/man"
	cp -R completions LICENSE README.md "$(TARGET)/dist/$(PACK)"
	cp crates/bin/install.mk "$(TARGET)/dist/$(PACK)/Makefile"
	tar -C "$(TARGET)/dist" -czf "$(TARGET)/dist/$(PACK).tar.gz" "$(PACK)"
	@echo "$(TARGET)/dist/$(PACK).tar.gz"

clean:
	$(CARGO) clean
