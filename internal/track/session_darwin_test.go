package track

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/proc"
	"github.com/zsbx/zsbx/internal/track/scan"
)

// These tests need a Mac. With ZSBX_TEST_REQUIRE=seatbelt they fail instead of being skipped.

func requireSeatbelt(t *testing.T) {
	t.Helper()
	if c := probe(Options{}); c.noSeatbelt != "" {
		testkit.Lacks(t, testkit.Seatbelt, c.noSeatbelt)
	}
}

// begun starts an act in a session with a separate store.
func begun(t *testing.T, act string, o Options) (*Store, *Session) {
	t.Helper()
	requireSeatbelt(t)
	st, err := OpenStoreAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Store = st
	s, err := Begin(o)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{exe}
	if strings.Contains(act, " ") {
		argv = []string{"/bin/sh", "-c", act}
	}
	if err := s.Start(&fork.Command{Path: argv[0], Args: argv, Env: append(os.Environ(), "ZSBX_TEST_ACT="+act)}); err != nil {
		t.Fatal(err)
	}
	return st, s
}

func closed(t *testing.T, s *Session) Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := s.Close(ctx)
	if err != nil {
		t.Fatalf("%v %+v", err, r)
	}
	return r
}

// procsOf returns the processes with a session's fingerprint.
func procsOf(t *testing.T, id string) []int {
	t.Helper()
	k := &kernelTable{session: id}
	rows, err := k.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, r := range rows {
		if !r.Dead() && k.Probe(r.Pid).Match() == scan.Member {
			pids = append(pids, r.Pid)
		}
	}
	return pids
}

// TestMacReap: daemons, hoppers and all of them together are killed, and a process outside the
// session is not.
func TestMacReap(t *testing.T) {
	requireSeatbelt(t)
	bystander := exec.Command("/bin/sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Wait() }()
	defer func() { _ = bystander.Process.Kill() }()
	for _, act := range []string{"daemon", "many", "hopper", "all"} {
		for range 5 {
			_, s := begun(t, act, Options{})
			id := s.ID()
			if _, err := s.Wait(); err != nil {
				t.Fatal(err)
			}
			if ev, err := s.Next(); err != io.EOF { // no event for the session's end
				t.Errorf("%+v, %v", ev, err)
			}
			if act != "hopper" {
				time.Sleep(300 * time.Millisecond)
				if len(procsOf(t, id)) == 0 {
					t.Errorf("%s: nothing got away: the test proves nothing", act)
				}
			}
			r := closed(t, s)
			if !r.Done() {
				t.Errorf("%s: %+v", act, r)
			}
			if left := procsOf(t, id); len(left) > 0 {
				t.Errorf("%s: %v are left", act, left)
			}
		}
	}
	if r, err := proc.Look(bystander.Process.Pid); err != nil || r.Dead() {
		t.Errorf("the bystander: %+v, %v", r, err)
	}
}

// TestMacKeepAndReap: what was kept is found and killed from the store alone.
func TestMacKeepAndReap(t *testing.T) {
	st, s := begun(t, "daemon", Options{Keep: true, Name: "kept"})
	_, other := begun(t, "daemon", Options{Keep: true})
	defer func() { _, _ = other.Wait() }()
	for _, x := range []*Session{s, other} {
		if _, err := x.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	id, otherID := s.ID(), other.ID()
	time.Sleep(300 * time.Millisecond)
	if r := closed(t, s); !r.Kept {
		t.Fatalf("%+v", r)
	}
	i, err := st.Get("kept")
	if err != nil || len(i.Procs) == 0 || i.Life != Kept {
		t.Errorf("%+v, %v", i, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := st.Reap(ctx, "kept")
	if err != nil || !r.Done() || !r.Removed {
		t.Errorf("%+v, %v", r, err)
	}
	if left := procsOf(t, id); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if len(procsOf(t, otherID)) == 0 {
		t.Error("the other session was killed, too")
	}
	other.opts.Keep = false
	if r := closed(t, other); !r.Done() {
		t.Errorf("%+v", r)
	}
}

// TestMacTrackOnlyRestrictsNothing: a command that is only tracked reads, writes and connects
// as without zsbx.
func TestMacTrackOnlyRestrictsNothing(t *testing.T) {
	requireSeatbelt(t)
	script := `cat ~/.profile /etc/hosts >/dev/null 2>&1; f=$(mktemp /tmp/zsbx-test.XXXXXX) && echo x >"$f" && rm "$f" && ls / ~ >/dev/null && kill -0 $PPID && /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()'`
	if b, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("the control fails: %v\n%s", err, b)
	}
	_, s := begun(t, script, Options{})
	ws, err := s.Wait()
	if err != nil || ws.ExitStatus() != 0 {
		t.Errorf("%v, %v", ws, err)
	}
	closed(t, s)
}

// TestMacTable: this process is in the list once, with its parent and with the same start time
// in two snapshots, and it is no member of a session.
func TestMacTable(t *testing.T) {
	k := &kernelTable{session: "0f9a3c1e-5b7d-4e2a-9c11-223344556677"}
	rows, err := k.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range rows {
		if r.Pid == os.Getpid() {
			seen++
			if now, err := proc.Look(r.Pid); err != nil || now.ID != r.ID || r.Parent != os.Getppid() {
				t.Errorf("%+v, %+v, %v", r, now, err)
			}
		}
	}
	if seen != 1 {
		t.Errorf("this process is listed %d times in %d", seen, len(rows))
	}
	if v := k.Probe(os.Getpid()).Match(); v == scan.Member {
		t.Error("this process is a member")
	}
	p, err := proc.Look(os.Getpid())
	one := []Proc{p}
	proc.Fill(one)
	if err != nil || len(one[0].Argv) == 0 || p.State == "?" {
		t.Errorf("%+v, %v", one, err)
	}
	if m, err := proc.Here(); err != nil || m.Host == "" || len(m.Boot) != 36 {
		t.Errorf("%+v %v", m, err)
	}
}
