#!/bin/sh
# After the package was removed, or the old files of an upgrade were. Of an upgrade say dpkg "upgrade",
# rpm 1. "purge" comes after "remove".
set -e
case "${1:-}" in
purge | upgrade | failed-upgrade | abort-install | abort-upgrade | disappear | 1) ;;
*)
	loaded=/etc/apparmor.d/zsbx
	if [ -e "$loaded" ]; then
		rm -f "$loaded"
		if [ -w /sys/kernel/security/apparmor/.remove ]; then
			printf zsbx >/sys/kernel/security/apparmor/.remove || true
		fi
	fi
	rm -f /var/cache/apparmor/*/zsbx
	cat <<'TEXT'
zsbx: what users keep stays: records of sessions, and layers of "zsbx try" that were not
zsbx: applied yet. Each user removes it by: rm -rf ~/.local/state/zsbx ~/.cache/zsbx-caches
TEXT
	;;
esac
