#!/bin/sh
# Installs what building zsbx needs on Debian and Ubuntu: git, make and Go.
# What is there already is left as it is. As an ordinary user it only says
# what is missing.
set -eu
cd "$(dirname "$0")/.."

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

# A distribution's Go may be older than go.mod asks for. Go 1.21 and later
# then fetch the right one themselves.
want=$(sed -n 's/^go //p' go.mod)
if ! GOTOOLCHAIN=auto go version >/dev/null 2>&1; then
	echo "setup: Go $want or later is needed; see https://go.dev/dl" >&2
	exit 1
fi
echo "setup: $(GOTOOLCHAIN=auto go version)"
