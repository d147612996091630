#!/usr/bin/env bash
# Usage: scripts/bench.sh [-fifo] [flags of scripts/bench: -only WHAT, -rounds N, -uid USER, -vs BINARY]
#
# Measures zsbx against a bare exec, a Go program that forks and waits, and
# bubblewrap, all in one run, and prints Markdown tables. As root it measures as
# nobody. With -fifo, chrt(1) runs everything in the real-time class SCHED_FIFO,
# where other programs hardly disturb it.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v bwrap >/dev/null || { echo "bench: bubblewrap is needed: apt-get install bubblewrap" >&2; exit 1; }
class=
if [ "${1:-}" = -fifo ]; then
	shift
	class="chrt -f 5"
	export ZSBX_BENCH=SCHED_FIFO
fi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
go test -c -o "$made/bench" ./scripts/bench
go build -o "$made/probe" ./scripts/bench/probe
$class "$made/bench" -zsbx ./zsbx -probe "$made/probe" "$@"
