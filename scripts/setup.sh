#!/bin/sh
# Installs what building zsbx needs on Debian and Ubuntu: git, make, and a Go
# that is new enough. With --tests it also installs what the tests use. What
# exists is left as it is. For an ordinary user, or without apt-get, it only
# says what is missing: without what only tests use, those tests are skipped.
set -eu
cd "$(dirname "$0")/.."

go_version=1.26.8 # if the distribution's Go can't fetch a newer one itself

# lacking lists the packages of the tests that are not there.
lacking() {
	grep -v '^#' scripts/ci-packages.txt | while read -r package needs; do
		if [ -z "$needs" ]; then
			dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || printf ' %s' "$package"
			continue
		fi
		for need in $needs; do
			[ -e "$need" ] || command -v "$need" >/dev/null || {
				printf ' %s' "$package"
				break
			}
		done
	done
}

if [ "$(id -u)" != 0 ] && ! command -v go >/dev/null && [ -x /usr/local/go/bin/go ]; then
	echo "setup: Go is installed but not in PATH; type: export PATH=\$PATH:/usr/local/go/bin" >&2
	exit 1
fi
missing=
command -v git >/dev/null || missing="$missing git"
command -v make >/dev/null || missing="$missing make"
command -v go >/dev/null || missing="$missing golang-go"
[ "$(uname)" = Darwin ] || [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
wanted=
[ "${1:-}" != --tests ] || wanted=$(lacking)
if [ -n "$missing$wanted" ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "setup: installing$missing$wanted" >&2
		log=$(mktemp)
		# shellcheck disable=SC2086 # a list of words
		{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing $wanted; } \
			</dev/null >"$log" 2>&1 || {
			tail -n 30 "$log" >&2
			echo "setup: can't install$missing$wanted" >&2
			rm -f "$log"
			exit 1
		}
		rm -f "$log"
	elif [ -n "$missing" ]; then
		echo "setup: missing:$missing" >&2
		echo "setup: as root, type: apt-get install$missing" >&2
		exit 1
	else
		echo "setup: tests that need one of these are skipped:$wanted" >&2
		echo "setup: to run them, too, as root, type: apt-get install$wanted" >&2
	fi
fi

# Go 1.21 and later fetch the release that go.mod asks for. An older one, such
# as Debian 12's, can't, but it can fetch that release as a module, checked by
# the checksum database. Modules have no executable bits.
if ! go list . >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ] || [ -e /usr/local/go ]; then
		echo "setup: $(go version) is too old: go.mod asks for $(sed -n 's/^go //p' go.mod)" >&2
		exit 1
	fi
	echo "setup: fetching Go $go_version" >&2
	module=golang.org/toolchain@v0.0.1-go$go_version.linux-$(dpkg --print-architecture)
	tmp=$(mktemp -d)
	(cd "$tmp" && GOPATH=$tmp GOMODCACHE=$tmp/mod GOFLAGS=-modcacherw go mod download "$module")
	cp -R "$tmp/mod/$module" /usr/local/go
	chmod -R u+w,go-w,a+rX /usr/local/go
	chmod 755 /usr/local/go/bin/* /usr/local/go/pkg/tool/*/*
	ln -s /usr/local/go/bin/go /usr/local/go/bin/gofmt /usr/local/bin/
	rm -rf "$tmp"
	hash -r # the shell may remember where the older one is
fi
echo "setup: $(go version)"
