#!/usr/bin/env bash
# Shows zsbx at work: it builds itself inside, with the flags of the build outside, so that only
# the link is done twice. Then it shows that reading a secret and writing outside are refused
# inside, but succeed without zsbx.
set -euo pipefail
cd "$(dirname "$0")/.."
zsbx=$PWD/zsbx
dir=$(mktemp -d /var/tmp/zsbx-demo-XXXXXX)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/project" "$dir/home"
tar -c --exclude=./.git --exclude=./zsbx . | tar -x -C "$dir/project"
echo "the password is swordfish" >"$dir/home/secret"
cd "$dir/project"

show() { printf '\n$ %s\n' "$*"; }
refused() { # the command line must fail, and say why
	show "zsbx run --rw . -- $*"
	if "$zsbx" run --rw . -- "$@"; then
		echo "demo: this should have been refused" >&2
		exit 1
	fi
}
allowed() {
	show "$*"
	"$@"
}

echo "1. A real build inside: zsbx itself, in a copy of its sources"
show "zsbx run --rw . -- make build"
"$zsbx" run --rw . -- make build
allowed ./zsbx version

printf '\n2. A secret outside the project\n'
allowed cat ../home/secret
refused cat ../home/secret

printf '\n3. A write outside the project\n'
allowed touch ../home/planted
rm ../home/planted
refused touch ../home/planted
[ ! -e ../home/planted ] || { echo "demo: the file was made" >&2; exit 1; }

printf '\n4. A daemon that tries to stay\n'
show "zsbx run --rw . -- sh -c 'setsid sleep 1000 & echo \$! >pid'"
"$zsbx" run --rw . -- sh -c 'setsid sleep 1000 & echo $! >pid'
if kill -0 "$(cat pid)" 2>/dev/null; then
	echo "demo: it is still running" >&2
	exit 1
fi
echo "it is gone"
printf '\nAll as promised.\n'
