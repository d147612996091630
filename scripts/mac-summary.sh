#!/usr/bin/env bash
# Prints, in Markdown, what a run of the tests on a Mac promised and found: each line
# of "zsbx check --json" (check.json in the given directory), then for each *.log file
# how many tests passed, failed and were skipped, and those that did not pass.
set -euo pipefail
cd "${1:?the directory with the logs}"
echo '### What this machine is'
echo '```'
cat machine.txt 2>/dev/null || echo 'not known'
echo '```'
echo '| promise | seen |'
echo '|---|---|'
if [ -s check.json ]; then
	perl -MJSON::PP -0777 -ne '
		for (@{decode_json($_)->{proofs}}) {
			(my $detail = $_->{detail}) =~ s/([|`])/\\$1/g;
			print "| $_->{promise} | ", ($_->{held} ? "held" : "**not held**: $detail"), " |\n";
		}' check.json
else
	echo '| zsbx check | **no answer** |'
fi
for log in *.log; do
	case $log in denials.log) continue ;; esac
	[ -e "$log" ] || continue
	passed=$(grep -c '^ *--- PASS' "$log" || true)
	failed=$(grep -c '^ *--- FAIL' "$log" || true)
	skipped=$(grep -c '^ *--- SKIP' "$log" || true)
	echo "| ${log%.log} | $passed passed, $failed failed, $skipped skipped |"
	{ grep '^ *--- FAIL' "$log" || true; } | sed -E 's/^ *--- FAIL: ([^ ]*).*/| `\1` | **failed** |/'
	{ grep '^ *--- SKIP' "$log" || true; } | sed -E 's/^ *--- SKIP: ([^ ]*).*/| `\1` | skipped |/'
done
