#!/usr/bin/env bash
# Usage: scripts/packages/contents.sh DIR
#
# Reads the packages in DIR by the tools of the systems that they are for.
set -euo pipefail
cd "$1"
fail() {
	echo "packages: $*" >&2
	exit 1
}
has() { # WHERE FILE..., of the names on standard input
	local where=$1 names
	names=$(sed -E 's,^\./,,; s,^/,,')
	shift
	for f in "$@"; do
		grep -qx "$f" <<<"$names" || fail "$where lacks $f; it has
$names"
	done
	echo "$where: $(wc -l <<<"$names") names, among them $*"
}
common=(usr/bin/zsbx usr/share/man/man1/zsbx.1.gz usr/share/man/man1/zsbx-run.1.gz usr/share/zsbx/apparmor
	usr/share/doc/zsbx/changelog.gz usr/share/bash-completion/completions/zsbx
	usr/share/fish/vendor_completions.d/zsbx.fish)
elsewhere=(usr/share/zsh/site-functions/_zsbx usr/share/licenses/zsbx/LICENSE)

for deb in *.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -t | has "$deb" "${common[@]}" \
		usr/share/zsh/vendor-completions/_zsbx usr/share/doc/zsbx/copyright usr/share/doc/zsbx/changelog.Debian.gz
	lintian --allow-root --fail-on error,warning "$deb"
done
for rpm in *.rpm; do
	rpm -qlp "$rpm" | has "$rpm" "${common[@]}" "${elsewhere[@]}"
	[ "$(rpm -qp --qf '%{buildhost} %{license}' "$rpm")" = "localhost MIT" ] || fail "$rpm: its build host or licence"
	rpm -qp --scripts "$rpm" | grep -q apparmor_parser || fail "$rpm has no script"
done
for apk in *.apk; do
	bsdtar -tf "$apk" 2>/dev/null | has "$apk" "${common[@]}" "${elsewhere[@]}" .PKGINFO .post-install .post-upgrade .post-deinstall
done
for arch in *.pkg.tar.zst; do
	bsdtar -tf "$arch" | has "$arch" "${common[@]}" "${elsewhere[@]}" .PKGINFO .INSTALL
	pacman -Qip "$arch" | grep -E '^(Name|Version|Architecture|Licenses|Packager)'
done
for tar in *.tar.gz; do
	tar -tf "$tar" | has "$tar" zsbx LICENSE README.md man/zsbx.1 completions/_zsbx
	! tar -tvf "$tar" | grep -v ' root/root ' || fail "$tar names an owner"
done
for sbom in *.cdx.json; do
	grep -q '"purl": "pkg:golang/github.com/spf13/cobra@' "$sbom" || fail "$sbom does not name cobra"
done
sha256sum --quiet -c checksums.txt
