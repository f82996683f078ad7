# Where the tools, their manual pages and their completions go. The Makefile of the sources takes
# this in; what `make dist` packs has it as its Makefile, with the tools in bin/.
#
#   make install    PREFIX=/usr/local DESTDIR=
#   make uninstall  the same, undone

PREFIX  ?= /usr/local
DESTDIR ?=
BIN     ?= bin

bindir  = $(DESTDIR)$(PREFIX)/bin
mandir  = $(DESTDIR)$(PREFIX)/share/man
bashdir = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zshdir  = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fishdir = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

INSTALLED := $(sort $(basename $(notdir $(wildcard man/*.1))))

.PHONY: install uninstall
install:
	install -d "$(bindir)" "$(mandir)/man1" "$(mandir)/man7" "$(bashdir)" "$(zshdir)" "$(fishdir)"
	set -e; for tool in $(INSTALLED); do \
	  install -m 755 "$(BIN)/$$tool" "$(bindir)/$$tool"; \
	  install -m 644 "man/$$tool.1" "$(mandir)/man1/$$tool.1"; \
	  install -m 644 "completions/$$tool.bash" "$(bashdir)/$$tool"; \
	  install -m 644 "completions/_$$tool" "$(zshdir)/_$$tool"; \
	  install -m 644 "completions/$$tool.fish" "$(fishdir)/$$tool.fish"; \
	done
	install -m 644 man/muxutils.7 "$(mandir)/man7/muxutils.7"

uninstall:
	set -e; for tool in $(INSTALLED); do \
	  rm -f "$(bindir)/$$tool" "$(mandir)/man1/$$tool.1" "$(bashdir)/$$tool" \
	    "$(zshdir)/_$$tool" "$(fishdir)/$$tool.fish"; \
	done
	rm -f "$(mandir)/man7/muxutils.7"
