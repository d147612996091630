package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
)

// fakeLog returns a program that replaces log(1).
func fakeLog(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestStream: a line that the log prints a little late is in the report. On a busy machine it
// may come too late.
func TestStream(t *testing.T) {
	if !testkit.Within(testkit.Patience, func() bool { return streamed(t) || t.Failed() }) {
		t.Error("the late line is never in the report")
	}
}

func streamed(t *testing.T) bool {
	dir := t.TempDir()
	line := filepath.Join(dir, "line")
	if err := syscall.Mkfifo(line, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newTestLog()
	starts(t, s, fakeLog(t, `echo "$*" >`+dir+`/args; echo $$ >`+dir+`/pid; echo Filtering the log data; `+
		`read -r late <`+line+`; printf '%s\n' "$late"; exec sleep 100`))
	go func() {
		time.Sleep(logEnds / 5)
		_ = os.WriteFile(line, []byte(logLine("Sandbox: cat(1) deny(1) file-read-data /x\n"+testTag)+"\n"), 0o600)
	}()
	begun := time.Now()
	got := s.Report()
	if len(got.Refusals) > 0 && got.Refusals[0].Act.Path != "/x" {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begun); took > testkit.Patience {
		t.Errorf("took %v", took)
	}
	if again := s.Report(); len(again.Refusals) < len(got.Refusals) {
		t.Errorf("again: %+v", again)
	}
	args, _ := os.ReadFile(dir + "/args")
	if want := `stream --style ndjson --predicate processID == 0 AND eventMessage ENDSWITH "` + testTag + `"`; strings.TrimSpace(string(args)) != want {
		t.Errorf("%s", args)
	}
	b, _ := os.ReadFile(dir + "/pid")
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "log ends", func() bool {
		state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		return len(state) == 0 || state[0] == 'Z' // process 1 may take minutes to reap it
	})
	return len(got.Refusals) == 1
}

// starts starts a program that replaces log(1). On a busy machine that may take too long.
func starts(t *testing.T, s *Log, program string) {
	t.Helper()
	testkit.Eventually(t, "the log begins", func() bool { return s.Start(program) == nil })
}

// TestStreamFails: log(1) is missing, ends at once, or prints for ever.
func TestStreamFails(t *testing.T) {
	for _, program := range []string{"/nonexistent/log", fakeLog(t, "exit 64")} {
		testkit.Eventually(t, program+" fails at once", func() bool { // or so busy is the machine
			begun := time.Now()
			if newTestLog().Start(program) == nil {
				t.Fatalf("%s: no error", program)
			}
			return time.Since(begun) < logBegins
		})
	}
	testkit.Eventually(t, "the reason is reported", func() bool { // or so busy is the machine
		err := newTestLog().Start(fakeLog(t, "echo log: Must be admin to run >&2; exit 77"))
		return err != nil && err.Error() == "log stream did not begin: log: Must be admin to run"
	})
	s := newTestLog()
	starts(t, s, fakeLog(t, "while sleep 0.01; do echo x; done"))
	begun := time.Now()
	if got := s.Report(); len(got.Refusals) != 0 || time.Since(begun) > testkit.Patience {
		t.Errorf("%+v after %v", got, time.Since(begun))
	}
}
