#!/usr/bin/env bash
# Usage, as root on Debian: scripts/packages/build.sh
#
# Builds what a release has, from the last commit, twice and in different directories: the files must be
# the same. Then it tries them. dist/ has them afterwards. The first time takes long: what builds packages
# is built, and kept in ~/.cache/zsbx-packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
step() { printf '\n== %s\n' "$*"; }

step "what builds packages"
tools=${XDG_CACHE_HOME:-$HOME/.cache}/zsbx-packages
mkdir -p "$tools"
install_tool() { # MODULE@VERSION, kept under a name with its version
	local name=${1%@*} kept
	kept=$tools/$(echo "$1" | tr /@ __)
	if [ ! -x "$kept" ]; then
		GOBIN=$tools CGO_ENABLED=0 GOFLAGS=-trimpath go install "$1"
		name=${name%/v[0-9]}
		mv "$tools/${name##*/}" "$kept"
	fi
	ln -sf "$kept" "$bin/$2"
}
tmp=$(mktemp -d)
trap 'rm -rf --one-file-system "$tmp"' EXIT
bin=$tmp/bin
mkdir "$bin"
install_tool github.com/goreleaser/goreleaser/v2@v2.15.1 goreleaser
install_tool github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 cyclonedx-gomod
export PATH=$bin:$PATH
packages=
for need in lintian:lintian rpm:rpm bsdtar:libarchive-tools pacman:pacman-package-manager debootstrap:debootstrap; do
	command -v "${need%:*}" >/dev/null || packages+=" ${need#*:}"
done
# shellcheck disable=SC2086 # a list of words
[ -z "$packages" ] || DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages >/dev/null

SOURCE_DATE_EPOCH=$(git -c safe.directory="$PWD" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
for name in first second/elsewhere; do
	step "build: $name"
	git -c safe.directory="$PWD/.git" clone -q . "$tmp/$name"
	(
		cd "$tmp/$name"
		goreleaser check
		GOFLAGS= goreleaser release --snapshot --clean --skip=publish
	)
done

step "the same files, wherever they are built"
cmp "$tmp/first/dist/checksums.txt" "$tmp/second/elsewhere/dist/checksums.txt"
rm -rf dist
cp -a "$tmp/first/dist" dist
cat dist/checksums.txt

step "what is in the packages"
./scripts/packages/contents.sh dist

step "Debian: installed, used, upgraded, purged"
FRESH_BASE=$tools/debian ./scripts/fresh-root.sh ./scripts/packages/in-debian.sh
