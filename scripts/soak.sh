#!/usr/bin/env bash
# Usage, as root: scripts/soak.sh [ROUNDS]
#
# Lets programs that try to outlive their session do so, ROUNDS times in all (10,000), with each tracker, and
# ends the session in each way. Each batch has a PID namespace of its own, so what gets away is ended
# with it. soak.tsv has what was done: another call goes on there, and prints the table at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || {
	sed -n 's/^# Usage, /usage, /p' "$0" >&2
	exit 2
}
rounds=${1:-10000}
each=10 # rounds of a batch with each of the three ways to end a session
out=$PWD/soak.tsv
tmp=$(mktemp -d)
trap 'rm -rf --one-file-system "$tmp"' EXIT
CGO_ENABLED=0 go test -c -o "$tmp/track.test" ./internal/track
chmod 755 "$tmp"
touch "$out"

cat >"$tmp/batch" <<'SH'
#!/bin/sh
# batch TEST EACH OUT: TEST is TestAttacks/TRACKER/ATTACKER
began=$(date +%s)
if ZSBX_TEST_ROUNDS=$2 unshare --pid --mount --fork --kill-child --mount-proc "$(dirname "$0")/track.test" \
	-test.run "^$(echo "$1" | sed 's,/,$/^,g')\$" -test.v -test.timeout 30m >"$0.$$" 2>&1; then
	result=held
	grep -q -e '^ *--- SKIP' "$0.$$" && result=skipped
else
	result=FAILED
	cp "$0.$$" "$3.failed.$$"
fi
rm "$0.$$"
printf '%s\t%s\t%s\t%s\n' "$1" $(($2 * 3)) "$result" $(($(date +%s) - began)) >>"$3"
SH
chmod 755 "$tmp/batch"

# Every attacker once, to have the names.
(cd internal/track && ZSBX_TEST_ROUNDS=1 unshare --pid --mount --fork --kill-child --mount-proc \
	"$tmp/track.test" -test.run '^TestAttacks$' -test.v) | sed -nE 's,^ *--- PASS: (TestAttacks/[a-z]+/[^ ]+) .*,\1,p' >"$tmp/names"
[ -s "$tmp/names" ] || {
	echo "soak: no attacker ran" >&2
	exit 1
}
done_rounds() { awk -F '\t' '$3 == "held" { n += $2 } END { print n + 0 }' "$out"; }
cd internal/track
while [ "$(done_rounds)" -lt "$rounds" ]; do
	before=$(done_rounds)
	shuf "$tmp/names" | xargs -P $(($(nproc) * 2)) -I NAME "$tmp/batch" NAME "$each" "$out"
	echo "soak: $(done_rounds) of $rounds rounds" >&2
	! grep -q FAILED "$out" || break
	if [ "$(done_rounds)" = "$before" ]; then
		echo "soak: every batch was skipped; each says why by: go test ./internal/track -run TestAttacks -v" >&2
		exit 1
	fi
done

echo "Linux $(uname -r), $(nproc) processors, $(date -u +%F)"
awk -F '[\t/]' '
	{ names[$3]; trackers[$2] }
	$5 == "held" { held[$3, $2] += $4 }
	$5 == "FAILED" { failed[$3, $2] = 1 }
	END {
		for (a in names) {
			line = sprintf("%-14s", a)
			for (t in trackers) line = line sprintf("  %s %d held", t, held[a, t]) (failed[a, t] ? ", FAILED" : "")
			print line | "sort"
		}
	}' "$out"
! grep -q FAILED "$out"
