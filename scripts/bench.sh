#!/usr/bin/env bash
# Measures zsbx against a bare exec, a Go program that forks and waits, and
# bubblewrap, all in one run; prints Markdown tables. Root measures as nobody.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v bwrap >/dev/null || { echo "bench: bubblewrap is needed: apt-get install bubblewrap" >&2; exit 1; }
exec go run ./scripts/bench -zsbx ./zsbx "$@"
