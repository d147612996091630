package track

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// orphanOf returns the orphans that this test made, by program and session.
func orphanOf(t *testing.T, st *Store, id string) []Info {
	t.Helper()
	_, all, err := st.Survey()
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	return slices.DeleteFunc(all, func(s Info) bool {
		return len(s.Record.Argv) == 0 || s.Record.Argv[0] != self || id != "" && s.ID != id
	})
}

// forgetAll removes a store's files by hand.
func forgetAll(t *testing.T, st *Store) {
	t.Helper()
	if err := os.RemoveAll(st.Dirs()[0]); err != nil {
		t.Fatal(err)
	}
}

// TestOrphan: a session whose files were removed by hand is found by its keeper, and ended
// without proof. While its supervisor lives, it is no orphan.
func TestOrphan(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s := supervise(t, o, "keep", "sleepers")
		eventually(t, "all processes run", func() bool { return sleeping(t, s.id, 5) })
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if got := orphanOf(t, o.Store, ""); len(got) > 0 {
			t.Fatalf("it is recorded: %+v", got)
		}
		forgetAll(t, o.Store)
		got := orphanOf(t, o.Store, s.id)
		if len(got) != 1 || got[0].Record.Keeper.Pid != s.keeper || len(got[0].Procs) != 6 {
			t.Fatalf("%+v", got)
		}
		i, err := o.Store.Get(s.id[:13])
		if err != nil || i.ID != s.id || len(i.Procs) != 6 {
			t.Fatalf("%+v, %v", i, err)
		}
		r, err := o.Store.Reap(deadline(t), s.id[:13])
		if err != nil || r.Proof || r.Left() || r.Killed != 6 || r.Unproved != unprovedWord {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.id); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		if _, err := o.Store.Reap(deadline(t), s.id); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	})
}

// TestOrphanSupervised: a session whose program lives is no orphan.
func TestOrphanSupervised(t *testing.T) {
	o := Options{Tracker: Subtree, Store: tempStore(t)}
	s := supervise(t, o, "keep", "sleepers")
	eventually(t, "all processes run", func() bool { return sleeping(t, s.id, 5) })
	forgetAll(t, o.Store)
	if got := orphanOf(t, o.Store, ""); len(got) > 0 {
		t.Fatalf("%+v", got)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	if got := orphanOf(t, o.Store, s.id); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	_ = syscall.Kill(s.keeper, syscall.SIGTERM) // what a user can type
	eventually(t, "nothing is left", func() bool { return len(marked(t, s.id)) == 0 })
}

// TestOrphanOnlyByName: a process that is only named zsbx-keeper does not count as one,
// whatever else it does to look so, unless it blocks SIGTERM. One that does all of that inside
// a session still belongs to that session.
func TestOrphanOnlyByName(t *testing.T) {
	named := filepath.Join(t.TempDir(), keeperName)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, named); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(named, "1000")
	c.Env = []string{SessionEnv + "=11111111-1111-4111-8111-111111111111"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	p, err := proc.Look(c.Process.Pid)
	if err != nil || p.Name != keeperName || p.Session != p.Pid {
		t.Fatalf("%+v, %v", p, err)
	}
	if isKeeper(p) {
		t.Error("a sleep is taken for a keeper")
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := Options{Tracker: Subtree, Store: tempStore(t)}
	fake := helper(t, "fakekeeper")
	fake.Files = []*os.File{fake.Files[0], w, fake.Files[0]}
	s := begin(t, o, fake)
	w.Close()
	readFull(t, r, make([]byte, 6))
	awaitName(t, s.record.Keeper.Pid)
	eventually(t, "one looks like a keeper", func() bool {
		tab, err := proc.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(tab.Below(s.record.Keeper.Pid), func(p Proc) bool {
			return p.Name == keeperName && isKeeper(p)
		})
	})
	if got := orphanOf(t, o.Store, ""); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOrphanBeginning: a session that just begins or just ends is never an orphan.
func TestOrphanBeginning(t *testing.T) {
	requireDomain(t)
	st := tempStore(t)
	self, _ := os.Executable()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := orphanOf(t, st, ""); len(got) > 0 {
				t.Errorf("%+v", got)
				return
			}
		}
	})
	for range 4 * rounds(t) {
		c := exec.Command(self, filepath.Dir(st.Dirs()[0]), string(Domain), "", "sleepers")
		c.Env = append(os.Environ(), helperEnv+"=supervisor")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it runs", func() bool { ls, _ := st.List(); return len(ls) == 1 && len(ls[0].Procs) == 6 })
		_ = c.Process.Signal(unix.SIGKILL)
		_ = c.Wait()
		eventually(t, "it ended", func() bool { ls, _ := st.List(); return len(ls) == 0 || ls[0].Life == Ended })
		if _, err := st.Prune(deadline(t)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}
