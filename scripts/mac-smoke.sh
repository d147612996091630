#!/usr/bin/env bash
# The owner of a Mac runs this first, in a checkout, and sends back the output. It
# changes nothing outside a temporary directory, and takes about two minutes.
cd "$(dirname "$0")/.." && z=$PWD/zsbx && go build -o "$z" . || exit 1
export ZSBX_TEST_REQUIRE=seatbelt
sw_vers; uname -m; xcode-select -p; ls -d /Library/Developer/CommandLineTools
go test -count=1 -v ./internal/libsystem | grep -v '^==='
go test -count=1 -v -run '^TestMac(SelfCheck|AnswersOutside|Operations|LongLiterals|Nested|Errors)$' ./internal/enforce | grep -v '^==='
"$z" check --self-test; echo "check: $?"
"$z" run --rw . -- /bin/sh -c 'id -un; pwd -P; ls /dev/fd; echo err >/dev/stderr; mktemp; cat <<X
here
X'; echo "sh: $?"; "$z" run -- /bin/zsh -fc 'cat <<<zsh'; echo "zsh: $?"; "$z" run -- /bin/bash -c 'cat <<<bash'; echo "bash: $?"
for t in 'git --version' 'cc --version' 'make --version' 'python3 -V'; do "$z" run --rw . -- /usr/bin/${t%% *} ${t#* }; echo "$t: $?"; done
"$z" run -- /usr/bin/curl -sSo /dev/null https://example.com; echo "curl: $?"
if "$z" run --rw . -- cat ~/.zsh_history; then echo LEAK; fi; if "$z" run --track-only -- /usr/bin/open -g -a Calculator; then echo DOOR; fi
"$z" run --keep --track-only -- /usr/bin/perl -MPOSIX -e 'fork && exit; setsid; fork && exit; sleep 307'; "$z" ps; "$z" reap --all; pgrep -fl 'sleep 307' && echo SURVIVOR
go test -count=1 -v -run '^TestMac' ./internal/track ./internal/enforce | grep -E '^ *(---|FAIL|ok)'; log show --last 15m --style compact --predicate 'sender == "Sandbox"' | grep -o 'deny([0-9]*) .*' | sort | uniq -c | sort -rn | head -40
