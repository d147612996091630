package track

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// whole is the control: the file is undamaged.
const whole = "whole"

// noWord is the beginning of a file before a keeper has written into it.
var noWord = string(make([]byte, fork.KeeperStateSize))

// damages returns ways to damage a file of the store.
func damages() map[string]func(path string) error {
	write := func(b string) func(string) error {
		return func(p string) error { return os.WriteFile(p, []byte(b), 0o600) }
	}
	instead := func(make func(string) error) func(string) error {
		return func(p string) error { return errors.Join(os.Remove(p), make(p)) }
	}
	return map[string]func(path string) error{
		whole:       func(string) error { return nil },
		"empty":     write(""),
		"truncated": func(p string) error { return os.Truncate(p, 20) },
		"binary":    write("\x00\xff\x7fELF\x00"),
		"of nulls":  write(string(make([]byte, 4096))),
		"future":    write(noWord + `{"version":99,"id":"x","keeper":"none"}`),
		"version":   write(noWord + `{"version":99}`),
		"wrong":     write(noWord + `{"version":1,"id":7,"keeper":{"pid":-1}}`),
		"huge":      write(strings.Repeat(" ", 2*maxRecord)),
		"a FIFO":    instead(func(p string) error { return unix.Mkfifo(p, 0o600) }),
		"a link":    instead(func(p string) error { return os.Symlink("/etc/passwd", p) }),
		"directory": instead(func(p string) error { return os.Mkdir(p, 0o700) }),
		"others'":   func(p string) error { return os.Chmod(p, 0o666) },
	}
}

// TestDamagedFiles: whatever the damage, a live session is listed with its keeper and processes
// and can be ended, a dead one is removed, and the same works for other sessions.
func TestDamagedFiles(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			st := tempStore(t)
			o := Options{Store: st, Tracker: Subtree, Keep: true, Name: "kept"}
			living := kept(t, o)
			o.Name = ""
			dead, healthy := kept(t, o), kept(t, o)
			_ = syscall.Kill(dead.record.Keeper.Pid, fork.ReapSignal)
			eventually(t, "one has ended", func() bool { _, err := proc.Open(dead.record.Keeper); return err != nil })
			for _, s := range []*Session{living, dead} {
				if err := damage(filepath.Join(st.Dirs()[0], s.ID()+sessionFile)); err != nil {
					t.Fatal(err)
				}
			}
			ls, err := st.List()
			if err != nil || len(ls) != 3 {
				t.Fatalf("%+v, %v", ls, err)
			}
			i := ls[slices.IndexFunc(ls, func(i Info) bool { return i.ID == living.ID() })]
			if i.Record.Keeper.Pid != living.record.Keeper.Pid || len(i.Procs) != 2 || i.Life.Stale() ||
				(i.Err == nil) != slices.Contains([]string{whole, "empty", "truncated", "binary"}, name) {
				t.Errorf("%+v", i)
			}
			if _, err := st.Prune(deadline(t)); err != nil {
				t.Errorf("what is dead: %v", err)
			}
			if ls, err := st.List(); err != nil || len(ls) != 2 || len(marked(t, living.ID())) != 2 {
				t.Fatalf("%+v, %v", ls, err)
			}
			r, err := st.Reap(deadline(t), living.ID())
			if err != nil || r.Left() || !r.Removed || r.Killed != 2 || name == whole && !r.Proof {
				t.Errorf("what lives: %+v, %v", r, err)
			}
			if left := marked(t, living.ID()); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if r, err := st.Reap(deadline(t), healthy.ID()); err != nil || !r.Done() {
				t.Errorf("the healthy one: %+v, %v", r, err)
			}
			if left, err := os.ReadDir(st.Dirs()[0]); err != nil || len(left) > 0 {
				t.Errorf("still on disk: %v, %v", left, err)
			}
		})
	}
}

// kept leaves a session with two processes.
func kept(t *testing.T, o Options) *Session {
	t.Helper()
	s := begin(t, o, runShell(t, `sleep 1000 & setsid sleep 1000 & exit 0`))
	if _, err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Kept {
		t.Fatalf("%+v, %v", r, err)
	}
	eventually(t, "both run", func() bool { return sleeping(t, s.ID(), 2) })
	return s
}

// TestPowerLoss: all files exist but are empty, as after a power failure before they were
// written to disk. Here they are not older than the machine's start. Apparently nothing was
// started, and the session is removed.
func TestPowerLoss(t *testing.T) {
	st := tempStore(t)
	_, f, err := st.create("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if i := one(t, st); i.Life != Ended {
		t.Errorf("%+v", i)
	}
	rs, err := st.Prune(deadline(t))
	if err != nil || len(rs) != 1 || !rs[0].Removed {
		t.Errorf("%+v, %v", rs, err)
	}
	if ls, err := st.List(); err != nil || len(ls) > 0 {
		t.Errorf("%+v, %v", ls, err)
	}
}

// TestBothKilled: supervisor and keeper died before the keeper was recorded. What they left is
// no running session, and is ended like other stale ones.
func TestBothKilled(t *testing.T) {
	st := tempStore(t)
	s := kept(t, Options{Store: st, Tracker: Subtree, Keep: true})
	_ = syscall.Kill(s.record.Keeper.Pid, syscall.SIGKILL)
	eventually(t, "the keeper is dead", func() bool { _, err := proc.Open(s.record.Keeper); return err != nil })
	if err := os.Truncate(filepath.Join(st.Dirs()[0], s.ID()+sessionFile), 0); err != nil {
		t.Fatal(err)
	}
	if i := one(t, st); i.Life != Lost || len(i.Procs) != 2 {
		t.Errorf("%+v", i)
	}
	rs, err := st.Prune(deadline(t))
	if err != nil || len(rs) != 1 || rs[0].Killed != 2 || rs[0].Proof || len(marked(t, s.ID())) > 0 {
		t.Errorf("%+v, %v, left %v", rs, err, marked(t, s.ID()))
	}
}

// TestKeeperStoppedAlone: a keeper that was stopped before its supervisor was killed is woken
// to end the session. If the session is to be kept, the keeper keeps it.
func TestKeeperStoppedAlone(t *testing.T) {
	for _, mode := range []string{"", "keep"} {
		st := tempStore(t)
		s := supervise(t, Options{Store: st, Tracker: Subtree}, mode, "sleepers")
		eventually(t, "all run", func() bool { return sleeping(t, s.id, 5) })
		_ = syscall.Kill(s.keeper, syscall.SIGSTOP)
		eventually(t, "the keeper is stopped", func() bool { p, _ := proc.Look(s.keeper); return p.State == "T" })
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if i := one(t, st); i.Life.Stale() != (mode == "") || len(i.Procs) != 6 {
			t.Errorf("%q: %+v", mode, i)
		}
		if _, err := st.Prune(deadline(t)); err != nil {
			t.Error(err)
		}
		if left := marked(t, s.id); len(left) != map[string]int{"": 0, "keep": 6}[mode] {
			t.Errorf("%q: left %v", mode, left)
		}
		if _, err := st.Reap(deadline(t), s.id); mode != "" && err != nil {
			t.Error(err)
		}
	}
}

// startSlowly starts a session whose command executes path when its supervisor's standard input
// ends. It returns the keeper and what is below it.
func startSlowly(t *testing.T, o Options, path string) (*exec.Cmd, io.Closer, []Proc) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, filepath.Dir(o.Store.Dirs()[0]), string(o.Tracker), path)
	cmd.Env = append(os.Environ(), helperEnv+"=slowstart")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = in.Close(), cmd.Process.Kill(), cmd.Wait() })
	var below []Proc
	eventually(t, "the command waits", func() bool {
		tab, err := proc.Snapshot()
		if ls, _ := o.Store.List(); err == nil && len(ls) == 1 && !ls[0].Record.Keeper.IsZero() {
			below = append(tab.Below(ls[0].Record.Keeper.Pid), tab.Procs[ls[0].Record.Keeper.Pid])
		}
		return len(below) == 2
	})
	return cmd, in, below
}

// allGone fails the test for each process that still exists, and ends it.
func allGone(t *testing.T, ps []Proc) {
	for _, p := range ps {
		if h, err := proc.Open(p.ID); err == nil {
			t.Errorf("still there: %+v", p)
			_ = h.Signal(unix.SIGKILL)
			h.Close()
		}
	}
}

// TestSupervisorKilledAtStart: if the supervisor was killed, a command that can't be executed
// leaves nothing, and the keeper records that.
func TestSupervisorKilledAtStart(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		for _, first := range []bool{true, false} {
			cmd, in, below := startSlowly(t, o, "/missing")
			if !first { // the keeper fails while the supervisor lives
				_ = in.Close()
				eventually(t, "the keeper has failed", func() bool {
					tab, err := proc.Snapshot()
					return err == nil && !slices.ContainsFunc(below, func(p Proc) bool { return tab.Has(p.ID) })
				})
			}
			_, _, _ = cmd.Process.Kill(), cmd.Wait(), in.Close()
			eventually(t, "the session has ended", func() bool { return one(t, o.Store).Life == Ended })
			if r, err := o.Store.Reap(deadline(t), one(t, o.Store).ID); err != nil || !r.Done() {
				t.Errorf("%+v, %v", r, err)
			}
			allGone(t, below)
		}
	})
}

// TestHeldByUnknown: a locked file stays, even if no process of the session is found.
func TestHeldByUnknown(t *testing.T) {
	st := tempStore(t)
	const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	_, f, err := st.create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("damaged"), fork.KeeperStateSize); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Reap(deadline(t), id); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if i := one(t, st); i.Life.Stale() {
		t.Errorf("%+v", i)
	}
	f.Close()
	if r, err := st.Reap(deadline(t), id); err != nil || !r.Removed {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNotRemoved: if a session's file can't be removed, the report says so and names it.
func TestNotRemoved(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, runShell(t, "exit 0"))
	inTheWay := filepath.Join(st.Dirs()[0], s.ID()+sessionFile)
	if err := errors.Join(os.Remove(inTheWay), os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Close(deadline(t))
	var pe *os.PathError
	if err != nil || !r.Done() || r.Removed || !errors.As(r.NotRemoved, &pe) || pe.Path != inTheWay {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := st.Reap(deadline(t), s.ID()); !errors.As(err, &pe) || r.Removed {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(inTheWay, "full")); err != nil {
		t.Fatal(err)
	}
	if r, err := st.Reap(deadline(t), s.ID()); err != nil || !r.Removed {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestForeignPlace: a second directory that belongs to another user is ignored. As the only directory
// it is refused.
func TestForeignPlace(t *testing.T) {
	foreign := "/usr" // root's
	if os.Geteuid() == 0 {
		foreign = t.TempDir()
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	st := &Store{dirs: []storeDir{{parent: filepath.Join(t.TempDir(), "own")}, {parent: foreign, nofollow: true}}}
	s := kept(t, Options{Store: st, Tracker: Subtree, Keep: true})
	if i := one(t, st); i.ID != s.ID() {
		t.Errorf("%+v", i)
	}
	if _, err := st.Find("no-such"); !errors.Is(err, ErrNotFound) || errors.Is(err, errForeign) {
		t.Error(err)
	}
	if rs, err := st.Prune(deadline(t)); err != nil || len(rs) > 0 {
		t.Errorf("%+v, %v", rs, err)
	}
	if r, err := st.Reap(deadline(t), s.ID()); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Begin(Options{Store: &Store{dirs: st.dirs[1:]}}); !errors.Is(err, errForeign) {
		t.Errorf("a session was begun there: %v", err)
	}
}

// TestKeeperStoppedAtStart: keeper and command were stopped before the command was executed,
// and the supervisor was killed. Reap wakes them to end them.
func TestKeeperStoppedAtStart(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		cmd, in, below := startSlowly(t, o, "/bin/sh")
		for _, p := range below {
			_ = syscall.Kill(p.Pid, syscall.SIGSTOP)
		}
		_, _, _ = cmd.Process.Kill(), cmd.Wait(), in.Close()
		if r, err := o.Store.Reap(deadline(t), one(t, o.Store).ID); err != nil || !r.Done() {
			t.Errorf("%+v, %v", r, err)
		}
		allGone(t, below)
	})
}
