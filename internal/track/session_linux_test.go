package track

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

func TestSession(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		check := canary(t)
		c := runShell(t, `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); exit 7`)
		s := begin(t, o, c)
		if got := s.choice.Kind; got != o.Tracker {
			t.Errorf("tracker %s, want %s", got, o.Tracker)
		}
		ws, err := s.Wait()
		if err != nil || ws.ExitStatus() != 7 {
			t.Fatalf("status %v, %v", ws, err)
		}
		r, err := s.Close(deadline(t))
		if err != nil || !r.Done() || !r.Removed {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.ID()); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		if left, err := os.ReadDir(o.Store.Dirs()[0]); err != nil || len(left) > 0 {
			t.Errorf("still on disk: %v, %v", left, err)
		}
		check()
	})
}

// TestGrace: a process that only writes out its input can do so after the command's end. One
// that keeps running is killed a moment later.
func TestGrace(t *testing.T) {
	const grace = 300 * time.Millisecond // how long what the command left may run
	kinds(t, func(t *testing.T, o Options) {
		for script, killed := range map[string]int{"(sleep 0.03; echo late) &": 0, "echo late; setsid sleep 1000 &": 1} {
			var ev fork.Event
			var said []byte
			// On a busy machine that time may be over too soon.
			if !testkit.Within(testkit.Patience, func() bool {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				c := runShell(t, script)
				c.Files[1] = w
				begun := time.Now()
				s := begin(t, o, c)
				w.Close()
				for ev = (fork.Event{}); err == nil && ev.Kind != fork.Emptied; {
					ev, err = s.Next()
				}
				if err != nil {
					t.Fatalf("%s: %v", script, err)
				}
				if took := time.Since(begun); killed == 0 && ev.Killed > 0 && took < grace {
					t.Errorf("%s: killed after %v", script, took)
				}
				said, err = io.ReadAll(r)
				if err != nil {
					t.Fatalf("%s: %v", script, err)
				}
				if rep, err := s.Close(deadline(t)); err != nil || !rep.Done() {
					t.Errorf("%s: %+v, %v", script, rep, err)
				}
				return t.Failed() || ev.Killed == killed && string(said) == "late\n"
			}) {
				t.Errorf("%s: %+v, said %q", script, ev, said)
			}
		}
	})
}

func TestKeepAndReap(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		o.Keep, o.Name = true, "kept"
		check := canary(t)
		s := begin(t, o, runShell(t, `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &)`))
		if _, err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		r, err := s.Close(deadline(t))
		if err != nil || !r.Kept || r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := Begin(o); !errors.Is(err, ErrNameTaken) {
			t.Fatalf("a name was given twice: %v", err)
		}
		eventually(t, "five processes are listed", func() bool { return len(one(t, o.Store).Procs) == 5 })
		if i := one(t, o.Store); i.Life != Kept {
			t.Fatalf("%+v", i)
		}
		r, err = o.Store.Reap(deadline(t), "kept")
		if err != nil || !r.Done() || !r.Removed || r.Killed < 2 { // a shell may still see the end of its sleep, and end by itself
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.ID()); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		if _, err := o.Store.Reap(deadline(t), s.ID()); !errors.Is(err, ErrNotFound) {
			t.Errorf("reaped again: %v", err)
		}
		check()
	})
}

// TestStartFails: nothing is left of a command that can't be started, and the session can start
// another one.
func TestStartFails(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s, err := Begin(o)
		if err != nil {
			t.Fatal(err)
		}
		c := attackCommand("sleepers")
		c.Path = filepath.Join(t.TempDir(), "missing")
		var se *fork.StepError
		if err := s.Start(c); !errors.As(err, &se) || se.Stage != "exec" || !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		c = attackCommand("sleepers")
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "exit 5"}
		if err := s.Start(c); err != nil {
			t.Fatal(err)
		}
		if ws, err := s.Wait(); err != nil || ws.ExitStatus() != 5 {
			t.Fatalf("%v, %v", ws, err)
		}
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		s, err = Begin(o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() || !r.Removed {
			t.Fatalf("%+v, %v", r, err)
		}
		if left, err := os.ReadDir(o.Store.Dirs()[0]); err != nil || len(left) > 0 {
			t.Errorf("still on disk: %v, %v", left, err)
		}
	})
}

// TestReapBetweenAttempts: while a supervisor that has not started its command yet lives, Reap
// waits for the attempt that does.
func TestReapBetweenAttempts(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		for _, late := range []bool{false, true} {
			reapBetweenAttempts(t, o, late)
		}
	})
}

func reapBetweenAttempts(t *testing.T, o Options, late bool) {
	s, err := Begin(o)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	c := attackCommand("sleepers")
	c.Path = filepath.Join(t.TempDir(), "missing")
	if late { // it fails after the keeper was found
		b := fork.Put(c.Memory(), byte(0))
		c.Steps = []fork.Step{{Name: "read(2)", Nr: unix.SYS_READ, Args: [6]uintptr{r.Fd(), uintptr(unsafe.Pointer(b)), 1}}}
	} else if err := s.Start(c); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	reaped, failed := make(chan error, 1), make(chan error, 1)
	if late {
		go func() { failed <- s.Start(c) }()
		eventually(t, "there is a keeper", func() bool { return !one(t, o.Store).Record.Keeper.IsZero() })
	}
	go func() {
		r, err := o.Store.Reap(deadline(t), s.ID())
		if err == nil && !r.Done() {
			err = fmt.Errorf("%+v", r)
		}
		reaped <- err
	}()
	testkit.Stays(t, "the reaping waits", func() bool { return len(reaped) == 0 })
	if late {
		_, _ = w.Write([]byte{0})
		if err := <-failed; !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		testkit.Stays(t, "the reaping waits for the next attempt", func() bool { return len(reaped) == 0 })
	}
	if err := s.Start(attackCommand("sleepers")); err != nil {
		t.Fatal(err)
	}
	if err := <-reaped; err != nil {
		t.Error(err)
	}
	if left := marked(t, s.ID()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("Close: %+v, %v", r, err)
	}
}

// TestUnrecorded: a command whose session can't be stored never runs.
func TestUnrecorded(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		marker := filepath.Join(t.TempDir(), "ran")
		s, err := Begin(o)
		if err != nil {
			t.Fatal(err)
		}
		state, err := os.Open(filepath.Join(o.Store.Dirs()[0], s.ID()+sessionFile)) // to be read only
		if err != nil {
			t.Fatal(err)
		}
		s.file, state = state, s.file
		if err := s.Start(runShell(t, ": >"+marker)); err == nil || !strings.HasPrefix(err.Error(), "recording the session") {
			t.Errorf("Start: %v", err)
		}
		state.Close()
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Errorf("Close: %+v, %v", r, err)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Error("the command ran")
		}
	})
}

// TestUnheard: a supervisor that was stopped for long misses messages if the command fills its
// queue. It still learns how all ended.
func TestUnheard(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, o Options) {
		t.Parallel()
		c := runShell(t, "trap 'exit 7' TERM; (i=0; while [ $i -lt 250 ]; do kill -STOP $$; sleep 0.002; kill -CONT $$; sleep 0.002; i=$((i+1)); done) & wait; while :; do sleep 0.05; done")
		c.Limit = fork.Limit{Time: 4 * time.Second, Kill: testkit.Patience}
		s := begin(t, o, c)
		testkit.Eventually(t, "it is over", s.Over)
		var got []fork.Event
		for {
			ev, err := s.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
			if ev.Kind != fork.Stopped {
				got = append(got, ev)
			}
		}
		if len(got) != 3 || got[0].Kind != fork.TimedOut || got[1].Kind != fork.Exited || got[1].Status.ExitStatus() != 7 || got[2].Kind != fork.Emptied {
			t.Errorf("heard %+v", got)
		}
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() || !r.Proof {
			t.Errorf("Close: %+v, %v", r, err)
		}
	})
}
