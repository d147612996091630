#!/usr/bin/env bash
# Compiles all packages for every system and machine that zsbx supports, without cgo, and keeps no output.
# Tests are linked for one machine of each system (linking all takes minutes), and type-checked for the others.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export CGO_ENABLED=0
for target in ${1:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
	export GOOS=${target%/*} GOARCH=${target#*/}
	go build -ldflags=-w -o "$out/" ./...
	case $target in
	linux/amd64 | darwin/arm64)
		go test -c -ldflags=-w -o /dev/null ./... # several at the same time
		echo "$target: builds, tests included"
		;;
	*)
		go vet ./...
		echo "$target: builds, and tests are type-checked"
		;;
	esac
done
