# What each target needs is installed by scripts/setup.sh on Debian and Ubuntu.

GO ?= go
PREFIX ?= /usr/local
DESTDIR ?=
# Without XDG_DATA_DIRS, as on servers, fish does not look below /usr/local.
FISH ?= $(if $(filter /usr/local,$(PREFIX)),/etc/fish/completions,$(PREFIX)/share/fish/vendor_completions.d)

# The binary names its revision, where the go command finds the right one: not in a clone of another user, and
# not without a directory .git (in an archive, in what "git worktree" made). There it would take the revision
# of a repository around this directory.
VCS := $(shell test -d .git && git status >/dev/null 2>&1 && echo true || echo false)

.PHONY: build test race faults lint cross docs demo bench packages soak install clean

build: # ./zsbx
	CGO_ENABLED=0 $(GO) build $(PROGRESS) -trimpath -buildvcs=$(VCS) -ldflags='-s -w' -o zsbx .

test: # every test that this machine can run; many of them wait, so more run at once than it has processors
	./scripts/setup.sh --tests
	$(GO) run ./scripts/suite -timeout 30m -parallel 6 ./...

race: # the race detector, except for tests that it makes too slow, those that measure memory, and layer, which has no goroutines
	CGO_ENABLED=1 $(GO) test -timeout 30m -race -skip 'TestDecodeLimits|TestRelocations|TestKeeperIsSmall' $$($(GO) list ./internal/... | grep -v -e '/enforce/attack$$' -e '/selftest$$' -e '/internal/layer' -e '/internal/track$$') ./policy/... ./enforce/... ./track
	CGO_ENABLED=1 $(GO) test -timeout 30m -race -run '^TestSocket' -skip StallTime ./internal/enforce/attack
	CGO_ENABLED=1 $(GO) test -timeout 30m -race -run '^Test(OpenStore|Store|Record|Holder|Encode|Parse|Table|Choose|Names|Find|Strange|Cgroup)' ./internal/track

faults: # makes system calls of zsbx fail, one at a time, and sends signals: some 20 minutes
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 2h ./scripts/faults -run TestEverything -v -everything -rounds 400

lint: # formatting, vet for both systems, and lines that say more than one thing
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	GOOS=linux $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	$(GO) run ./scripts/plain

cross: # compiles everything for every system and machine, tests included
	./scripts/cross.sh

docs: # man/, completions/, and internal/tables/tables_gen.go
	$(GO) generate ./internal/tables
	$(GO) run ./scripts/gen

demo: PROGRESS = -v # the first build takes minutes: it names what it compiles
demo: build # a real build inside, and two attacks that fail
	./scripts/demo.sh

bench: build # docs/performance.md describes what is measured
	./scripts/bench.sh

packages: # what a release has, built twice and tried: as root on Debian
	./scripts/packages/build.sh

soak: # attackers, trackers and ways to end, 10,000 rounds: some minutes, as root; it goes on where it was stopped
	./scripts/soak.sh

install: build # BSD's install has another -D
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(FISH)
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 755 zsbx $(DESTDIR)$(PREFIX)/bin/zsbx
	install -m 644 man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 completions/zsbx.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/zsbx
	install -m 644 completions/_zsbx $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_zsbx
	install -m 644 completions/zsbx.fish $(DESTDIR)$(FISH)/zsbx.fish
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) echo "$(PREFIX)/bin is not in PATH" ;; esac

clean:
	rm -f zsbx
