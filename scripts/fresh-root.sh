#!/usr/bin/env bash
# Usage, as root: scripts/fresh-root.sh [--user] COMMAND...
#
# Runs COMMAND by sh -c on a copy of the tree in a new Debian of nothing but base
# packages, made by debootstrap, as root or as the ordinary user "someone" of that
# Debian. It has its own mounts and processes, and uses the network of this
# machine. Packages and modules come from where this machine gets them.
#
# FRESH_BASE names a directory that keeps what debootstrap makes for the next time.
# FRESH_ROOT names the new root, which is kept then, to run more commands there.
set -euo pipefail

if [ "${1:-}" = --inside ]; then # --inside ROOT USER COMMAND, in new namespaces
	root=$2 user=$3 command=$4
	mount --make-rprivate /
	mount --bind "$root" "$root"
	cd "$root"
	mount -t proc proc proc
	mount --rbind /sys sys
	mount --rbind /dev dev
	mkdir -p .old
	pivot_root . .old
	cd /
	umount -l /.old
	rmdir /.old
	home=/root
	[ "$user" = root ] || home=/home/$user
	cd "$home/zsbx"
	# No exec: the first process stays root's, as on a real machine.
	setpriv --reuid "$user" --regid "$user" --init-groups env HOME="$home" USER="$user" LOGNAME="$user" sh -c "$command"
	exit
fi

user=root
if [ "${1:-}" = --user ]; then
	user=someone
	shift
fi
[ $# -gt 0 ] && [ "$(id -u)" = 0 ] || {
	sed -n 's/^# Usage, /usage, /p' "$0" >&2
	exit 2
}
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf --one-file-system "$tmp"' EXIT
base=${FRESH_BASE:-$tmp/base}
root=${FRESH_ROOT:-$tmp/root}

if [ ! -e "$base/etc/debian_version" ]; then
	# The first archive that apt uses here has the base packages.
	read -r archive suite < <(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | head -n 1)
	debootstrap --variant=minbase "$suite" "$base" "$archive" >"$tmp/log" || {
		tail "$tmp/log" >&2
		exit 1
	}
fi
if [ ! -e "$root" ]; then
	cp -a "$base" "$root"
	chroot "$root" useradd -m -s /bin/bash someone
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # nothing there has to survive a crash
	# How this machine reaches packages: apt's settings and keys, the resolver, and
	# certificates that were added.
	rm -f "$root/etc/apt/sources.list"
	cp -a /etc/apt/. "$root/etc/apt/"
	cp -a /usr/share/keyrings/. "$root/usr/share/keyrings/"
	rm -f "$root/etc/resolv.conf"
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	mkdir -p "$root/usr/local/share/ca-certificates"
	cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
fi
home=$root/root
[ "$user" = root ] || home=$root/home/$user
rm -rf "$home/zsbx"
mkdir "$home/zsbx"
tar -c --exclude=./zsbx . | tar -x --no-same-owner -C "$home/zsbx"
chroot "$root" chown -R "$user": "${home#"$root"}/zsbx"

settings=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb)
for name in ZSBX_TEST_REQUIRE http_proxy https_proxy no_proxy; do
	[ -z "${!name:-}" ] || settings+=("$name=${!name}")
done
for name in GOPROXY GONOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE; do
	value=$(go env $name 2>/dev/null || true)
	[ -z "$value" ] || settings+=("$name=$value")
done
env -i "${settings[@]}" unshare --mount --pid --fork --kill-child \
	"$PWD/scripts/fresh-root.sh" --inside "$root" "$user" "$*"
