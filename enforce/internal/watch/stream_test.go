package watch

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
)

// fakeLog is a program in log(1)'s place.
func fakeLog(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	line := filepath.Join(dir, "line")
	if err := syscall.Mkfifo(line, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newTestLog()
	err := s.Start(fakeLog(t, `echo "$*" >`+dir+`/args; echo $$ >`+dir+`/pid; echo Filtering the log data; `+
		`read -r late <`+line+`; printf '%s\n' "$late"; exec sleep 100`))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(logEnds / 5)
		_ = os.WriteFile(line, []byte(logLine("Sandbox: cat(1) deny(1) file-read-data /x\n"+testTag)+"\n"), 0o600)
	}()
	begun := time.Now()
	got := s.Report()
	if len(got.Refusals) != 1 || got.Refusals[0].Act.Path != "/x" {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begun); took > testkit.Patience {
		t.Errorf("took %v", took)
	}
	if again := s.Report(); len(again.Refusals) != 1 {
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
	for i := 0; syscall.Kill(pid, 0) == nil; i++ { // process 1 may take seconds to collect it
		if i > 1000 {
			t.Fatal("log still runs")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestStreamFails: one that is not there, ends at once, or talks for ever.
func TestStreamFails(t *testing.T) {
	for _, program := range []string{"/nonexistent/log", fakeLog(t, "exit 64")} {
		begun := time.Now()
		if err := newTestLog().Start(program); err == nil || time.Since(begun) > logBegins {
			t.Errorf("%s: %v after %v", program, err, time.Since(begun))
		}
	}
	s := newTestLog()
	if err := s.Start(fakeLog(t, "while sleep 0.01; do echo x; done")); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if got := s.Report(); len(got.Refusals) != 0 || time.Since(begun) > testkit.Patience {
		t.Errorf("%+v after %v", got, time.Since(begun))
	}
}
