#!/usr/bin/env bash
# Usage, as root: scripts/test-as-user.sh USER [go test arguments]
#
# Runs all tests as the ordinary user USER, who is created if missing, on a copy
# of the tree in the user's home directory. go test builds as root, and starts
# the test binaries with this script (--exec). If control groups of version 2 are
# mounted, the user gets one for each binary, as in a login session.
set -euo pipefail

if [ "${1:-}" = --exec ]; then # --exec USER TOP BINARY ARGS...
	user=$2 top=$3 bin=$4
	shift 4
	home=$(getent passwd "$user" | cut -d: -f6)
	dir=$(mktemp -d -p "$home")
	cgroup=
	leave() {
		rm -rf "$dir"
		[ -z "$cgroup" ] || { echo $$ >"${cgroup%/*}/cgroup.procs" && rmdir "$cgroup"; } || true
	}
	trap leave EXIT
	if mount=$(findmnt -n -t cgroup2 -o TARGET | head -n 1) && own=$(sed -n 's/^0:://p' /proc/self/cgroup) &&
		mkdir "$mount$own/zsbx-$user-$$" 2>/dev/null; then
		cgroup=$mount$own/zsbx-$user-$$
		chown "$user" "$cgroup" "$cgroup/cgroup.procs" "$cgroup/cgroup.subtree_control"
		echo $$ >"$cgroup/cgroup.procs"
	fi
	install -o "$user" -m 755 "$bin" "$dir/${bin##*/}"
	chown "$user": "$dir"
	cd "$home/src/${PWD#"$top"}"
	# No exec: the trap has to run.
	runuser -u "$user" -- env -i HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash LANG=C.UTF-8 \
		PATH="$PATH" TERM="${TERM:-dumb}" CI="${CI:-}" ZSBX_TEST_REQUIRE="${ZSBX_TEST_REQUIRE:-}" "$dir/${bin##*/}" "$@"
	exit
fi

cd "$(dirname "$0")/.."
user=$1
shift
[ $# -gt 0 ] || set -- -timeout 30m -parallel 6 ./...
id "$user" >/dev/null 2>&1 || useradd -m -s /bin/bash "$user"
home=$(getent passwd "$user" | cut -d: -f6)
rm -rf "$home/src"
mkdir "$home/src"
tar -c --exclude=./zsbx . | tar -x -C "$home/src"
chown -R "$user": "$home/src"
# The user has links to what root has built in the last hours, the standard library above all,
# which tests build programs with. Without them, as between file systems, the user builds it again.
cache=$home/.cache/go-build
mkdir -p "$cache"
(cd "$(go env GOCACHE)" && find . -type f -mmin -180 -print0 | xargs -0 cp -lf --parents -t "$cache") 2>/dev/null || true
find "$home/.cache" -type d -exec chown "$user": {} +
go run ./scripts/suite -count=1 -exec "$PWD/scripts/test-as-user.sh --exec $user $PWD" "$@"
