#!/bin/sh
# After the package was installed or upgraded: zsbx may make user namespaces where AppArmor
# restricts them, if the parser knows the rule (4.0 does, 3.0 rejects the file).
set -e
shipped=/usr/share/zsbx/apparmor
loaded=/etc/apparmor.d/zsbx
if [ -e "$loaded" ] && ! grep -q 'package zsbx writes' "$loaded"; then
	echo "zsbx: $loaded is not the package's and stays: $shipped is not loaded"
elif [ -d /etc/apparmor.d ] && command -v apparmor_parser >/dev/null && apparmor_parser -Q -K "$shipped" >/dev/null 2>&1; then
	cp "$shipped" "$loaded"
	# In a container, or with AppArmor switched off, it is for the next boot.
	apparmor_parser -r -W "$loaded" >/dev/null 2>&1 || true
fi
