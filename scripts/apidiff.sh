#!/usr/bin/env bash
# Usage: scripts/apidiff.sh [COMMIT]
#
# Prints how the public packages differ, incompatibly, from those of the last
# version's tag; without a tag, from those of COMMIT, which is HEAD^ unless it is
# given. It fails only if that tag is v1 or later. It needs apidiff in PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v apidiff >/dev/null || {
	echo "apidiff: not in PATH; see .ci/run for its version" >&2
	exit 1
}

# public lists the packages below a directory that other modules can import.
public() {
	cd "$1"
	go list -f '{{.Dir}}' ./policy/... ./enforce/... ./track/... | sed "s|^$(pwd -P)/||" | grep -v -e /internal/ -e '/internal$'
}

# has reports whether a directory is a package.
has() { compgen -G "$1/*.go" >/dev/null; }

git() { command git -c safe.directory="$PWD" "$@"; } # another user may own the clone
base=$(git describe --tags --abbrev=0 --match 'v[0-9]*' --exclude '*-*' HEAD^ 2>/dev/null) || base=${1:-HEAD^}
if ! git rev-parse -q --verify "$base^{commit}" >/dev/null; then
	echo "NOT CHECKED: there is no commit $base here to compare with"
	exit
fi
old=$(mktemp -d)
trap 'rm -rf --one-file-system "$old"' EXIT
git archive "$base" | tar -x -C "$old"
changed=
packages=$( (public "$old") && (public .))
for package in $(sort -u <<<"$packages"); do
	if ! has "$old/$package"; then
		echo "$package: new since $base"
		continue
	fi
	if ! has "$package"; then
		echo "$package: removed since $base"
		changed=yes
		continue
	fi
	if ! (cd "$old" && apidiff -w "$old/export" "./$package"); then
		echo "NOT CHECKED: $package of $base can't be read"
		continue
	fi
	differences=$(apidiff -incompatible "$old/export" "./$package")
	if [ -z "$differences" ]; then
		echo "$package: compatible with $base"
		continue
	fi
	printf '%s: not compatible with %s\n%s\n' "$package" "$base" "$differences"
	changed=yes
done
case $base in
v0.*) ;;
v[0-9]*) [ -z "$changed" ] || {
	echo "apidiff: within a major version, programs that embed zsbx must go on building" >&2
	exit 1
} ;;
esac
