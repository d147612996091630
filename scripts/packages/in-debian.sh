#!/bin/sh
# Usage: scripts/packages/in-debian.sh, in a new Debian (scripts/fresh-root.sh), after dist/ was built
#
# Installs an older package, runs the README's first example as an ordinary user, upgrades while a session
# runs, and purges.
set -eu
fail() {
	echo "in-debian: $*" >&2
	exit 1
}
as_user() { runuser -u someone -- env -i HOME=/home/someone USER=someone PATH=/usr/bin:/bin sh -c "cd ~/project && $1"; }

deb=$(ls dist/zsbx_*_"$(dpkg --print-architecture)".deb)
dpkg-deb -R "$deb" /tmp/older
sed -i 's/^Version: .*/Version: 0.0.0-1/' /tmp/older/DEBIAN/control
dpkg-deb -b /tmp/older /tmp/older.deb >/dev/null
rm -r /tmp/older
apt-get install -qy --no-install-recommends make gcc libc6-dev >/dev/null
touch /tmp/began

echo "-- install"
dpkg -i /tmp/older.deb
mkdir -p /home/someone/project /home/someone/.ssh
echo key >/home/someone/.ssh/id_ed25519
printf 'hello: main.c\n\tcc -o hello main.c\n' >/home/someone/project/Makefile
echo 'int main(void) { return 0; }' >/home/someone/project/main.c
chown -R someone: /home/someone

echo "-- the README's first example"
as_user 'cat ~/.ssh/id_ed25519' | grep -qx key || fail "control: the key can't be read"
as_user 'zsbx run --rw . -- make' || fail "make"
as_user './hello' || fail "hello was not made"
if as_user 'zsbx run --rw . -- cat ~/.ssh/id_ed25519'; then fail "the key was read"; fi
as_user 'zsbx run --rw . -- sh -c "sleep 1000 & echo \$! >pid"'
if kill -0 "$(cat /home/someone/project/pid)" 2>/dev/null; then fail "sleep runs on"; fi
as_user 'zsbx check --strict' || fail "check"

echo "-- upgrade while a session runs"
as_user 'exec zsbx run --rw . -- sh -c ": >began; exec sleep 1000"' &
while [ ! -e /home/someone/project/began ]; do sleep 0.1; done
dpkg -i "$deb"
as_user 'zsbx ps' | grep -q sleep || fail "the session is not listed"
as_user 'zsbx reap --all' || fail "reap"
wait || true
as_user 'zsbx ps'

echo "-- purge"
as_user 'zsbx run --rw . --keep --name kept -- sh -c "sleep 1000 >/dev/null 2>&1 &"'
if as_user 'zsbx reap --stale --purge'; then fail "purged while a session ran"; fi
as_user 'zsbx reap kept && zsbx reap --stale --purge' || fail "reap --purge"
[ -z "$(find /home/someone -name '*zsbx*')" ] || fail "left in the home directory: $(find /home/someone -name '*zsbx*')"
dpkg --purge zsbx
left=$(find / -xdev -name '*zsbx*' -newer /tmp/began -not -path '/home/*' -not -path '/root/*' -not -path '/tmp/*' \
	-not -path '/proc/*' -not -path '/var/lib/dpkg/*-old')
[ -z "$left" ] || fail "left: $left"
