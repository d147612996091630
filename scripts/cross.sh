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
	for pkg in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do
		go test -c -o "$out/test" "$pkg"
	done
	echo "$target: builds, tests included"
done
