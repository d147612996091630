#!/bin/sh
# Usage: scripts/packages/prepare.sh VERSION SECONDS
#
# Makes in .packages what packages have and the sources lack. SECONDS is the time of the commit.
set -eu
cd "$(dirname "$0")/../.."
version=$1 seconds=$2
out=.packages
rm -rf "$out"
mkdir -p "$out/man"
umask 022
for page in man/*.1; do
	gzip -9 -n <"$page" >"$out/man/${page##*/}.gz"
done
cp scripts/packages/installed.sh scripts/packages/removed.sh "$out"
gzip -9 -n <CHANGELOG.md >"$out/changelog.gz"

# deb-changelog(5). A snapshot's version has a "-", for which Debian writes "~".
author='zsbx authors <zsbx@users.noreply.github.com>'
gzip -9 -n >"$out/changelog.Debian.gz" <<TEXT
zsbx ($(echo "$version" | tr - '~')-1) stable; urgency=medium

  * Version $version: see changelog.gz.

 -- $author  $(LC_ALL=C date -u -d "@$seconds" '+%a, %d %b %Y %H:%M:%S +0000')
TEXT

# https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
{
	cat <<TEXT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: zsbx
Upstream-Contact: $author
Source: https://github.com/zsbx/zsbx

Files: *
Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE)
License: Expat
TEXT
	sed -e '1,/^Copyright/d' LICENSE | sed -e '/./,$!d' -e 's/^$/./' -e 's/^/ /'
} >"$out/copyright"
# apk's packages have the times of the scripts.
find "$out" -exec touch -h -d "@$seconds" {} +
