#!/bin/sh
# Installs what building zsbx needs on Debian and Ubuntu: git, make, and a Go
# that is new enough. What exists is left as it is. For an ordinary user it
# only prints what is missing.
set -eu
cd "$(dirname "$0")/.."

go_version=1.26.8 # if the distribution's Go can't fetch a newer one itself

if [ "$(id -u)" != 0 ] && ! command -v go >/dev/null && [ -x /usr/local/go/bin/go ]; then
	echo "setup: Go is installed but not in PATH; type: export PATH=\$PATH:/usr/local/go/bin" >&2
	exit 1
fi
missing=
command -v git >/dev/null || missing="$missing git"
command -v make >/dev/null || missing="$missing make"
command -v go >/dev/null || missing="$missing golang-go"
[ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "setup: missing:$missing" >&2
		echo "setup: as root, type: apt-get install$missing" >&2
		exit 1
	fi
	apt-get update -q
	# shellcheck disable=SC2086 # a list of words
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
fi

# Go 1.21 and later fetch the release that go.mod asks for. An older one, such
# as Debian 12's, can't, but it can fetch that release as a module, checked by
# the checksum database. Modules have no executable bits.
if ! go list . >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ] || [ -e /usr/local/go ]; then
		echo "setup: $(go version) is too old: go.mod asks for $(sed -n 's/^go //p' go.mod)" >&2
		exit 1
	fi
	module=golang.org/toolchain@v0.0.1-go$go_version.linux-$(dpkg --print-architecture)
	tmp=$(mktemp -d)
	(cd "$tmp" && GOPATH=$tmp GOMODCACHE=$tmp/mod GOFLAGS=-modcacherw go mod download "$module")
	cp -R "$tmp/mod/$module" /usr/local/go
	chmod -R u+w,go-w,a+rX /usr/local/go
	chmod 755 /usr/local/go/bin/* /usr/local/go/pkg/tool/*/*
	ln -s /usr/local/go/bin/go /usr/local/go/bin/gofmt /usr/local/bin/
	rm -rf "$tmp"
fi
echo "setup: $(go version)"
