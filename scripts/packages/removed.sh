#!/bin/sh
# After the package was removed, or the old files of an upgrade were. Of an upgrade say dpkg "upgrade",
# rpm 1. "purge" comes after "remove".
set -e
case "${1:-}" in
purge | upgrade | failed-upgrade | abort-install | abort-upgrade | disappear | 1) ;;
*)
	loaded=/etc/apparmor.d/zsbx
	if grep -qs 'package zsbx writes' "$loaded"; then
		rm -f "$loaded" /var/cache/apparmor/*/zsbx
		if [ -w /sys/kernel/security/apparmor/.remove ]; then
			printf zsbx >/sys/kernel/security/apparmor/.remove || true
		fi
	fi
	cat <<'TEXT'
zsbx: what users keep stays: ~/.local/state/zsbx (records of sessions, logs, trust in projects,
zsbx: and layers of "zsbx try" that were not applied yet), ~/.cache/zsbx-caches, ~/.cache/zsbx-agents
zsbx: (with logins of coding agents) and ~/.config/zsbx (policies). While zsbx is installed, each user
zsbx: removes all but the policies by: zsbx reap --stale --purge
zsbx: which refuses while there are sessions or such layers. Without zsbx:
zsbx: rm -rf ~/.local/state/zsbx ~/.cache/zsbx-caches ~/.cache/zsbx-agents
TEXT
	;;
esac
