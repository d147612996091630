#!/usr/bin/env bash
# Compiles all packages and their tests for every system and machine that zsbx
# supports, without cgo, and keeps no output.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export CGO_ENABLED=0
for target in ${1:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
	export GOOS=${target%/*} GOARCH=${target#*/}
	go build -o "$out/" ./...
	go test -c -o /dev/null ./... # it links each, several at the same time
	echo "$target: builds, tests included"
done
