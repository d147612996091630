package track

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// supervised is a session with a separate supervisor process.
type supervised struct {
	cmd         *exec.Cmd
	id          string
	keeper, pid int
}

// supervise starts a process that runs a session with the named attacker.
func supervise(t *testing.T, o Options, flags, attacker string) *supervised {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(o.Store.Dirs()[0])
	s := &supervised{cmd: exec.Command(self, dir, string(o.Tracker), flags, attacker)}
	s.cmd.Env = append(os.Environ(), helperEnv+"=supervisor")
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_, _ = o.Store.Reap(deadline(t), s.id)
		_ = s.cmd.Wait()
	})
	r := bufio.NewReader(out)
	for s.id == "" {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the supervisor said %q, %v", line, err)
		}
		if line != "ready\n" {
			if _, err := fmt.Sscan(line, &s.id, &s.keeper, &s.pid); err != nil {
				t.Fatalf("the supervisor said %q, %v", line, err)
			}
		}
	}
	awaitName(t, s.keeper)
	return s
}

// awaitName waits until a keeper has finished its setup.
func awaitName(t *testing.T, keeper int) {
	t.Helper()
	eventually(t, "the keeper has its name", func() bool {
		p, err := proc.Look(keeper)
		return err == nil && p.Name == keeperName
	})
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Eventually(t, what, ok)
}

func one(t *testing.T, st *Store) Info {
	t.Helper()
	ls, err := st.List()
	if err != nil || len(ls) != 1 {
		t.Fatalf("%+v, %v", ls, err)
	}
	return ls[0]
}

// TestSupervisorKilled: the keeper notices and ends the session. The store lists it as ended,
// and it can be removed.
func TestSupervisorKilled(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		for range rounds(t) {
			s := supervise(t, o, "-", "sleepers")
			eventually(t, "all processes run", func() bool { return sleeping(t, s.id, 5) })
			if i := one(t, o.Store); i.Life != Running || len(i.Procs) != 6 {
				t.Fatalf("%+v", i)
			}
			_ = s.cmd.Process.Kill()
			eventually(t, "nothing is left", func() bool { return len(marked(t, s.id)) == 0 })
			eventually(t, "the session ended", func() bool { return one(t, o.Store).Life == Ended })
			rs, err := o.Store.Prune(deadline(t))
			if err != nil || len(rs) != 1 || !rs[0].Done() || !rs[0].Removed {
				t.Fatalf("%+v, %v", rs, err)
			}
		}
	})
}

// TestSupervisorKilledKeep: with Keep the session runs on without its supervisor.
func TestSupervisorKilledKeep(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s := supervise(t, o, "keep", "sleepers")
		eventually(t, "all processes run", func() bool { return sleeping(t, s.id, 5) })
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		testkit.Stays(t, "the session goes on", func() bool {
			i := one(t, o.Store)
			return i.Life == Running && len(i.Procs) == 6
		})
		if rs, err := o.Store.Prune(deadline(t)); err != nil || len(rs) != 0 {
			t.Fatalf("a living session was pruned: %+v, %v", rs, err)
		}
		r, err := o.Store.Reap(deadline(t), s.id[:8])
		if err != nil || !r.Done() || r.Killed < 3 || len(marked(t, s.id)) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

// TestKeeperKilled: somebody outside kills the keeper. The command dies with it. What else can
// be found is killed all the same. Without a control group that is no proof, and the report
// says so.
func TestKeeperKilled(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s := supervise(t, o, "keep", "sleepers")
		eventually(t, "all processes run", func() bool { return sleeping(t, s.id, 5) })
		if err := syscall.Kill(s.keeper, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		eventually(t, "the loss is seen", func() bool { return one(t, o.Store).Life == Lost })
		eventually(t, "the command is dead, the others live", func() bool { return len(one(t, o.Store).Procs) == 5 })
		r, err := o.Store.Reap(deadline(t), s.id)
		if err != nil || r.Left() || r.Proof != (o.Tracker == Cgroup) || r.Proof == (r.Unproved != "") {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.id); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	})
}

// TestKeeperKilledUnderSupervisor: the supervisor notices and does the same.
func TestKeeperKilledUnderSupervisor(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		check := canary(t)
		c := attackCommand("sleepers")
		s, err := Begin(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(c); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all processes run", func() bool { return sleeping(t, s.ID(), 5) })
		_ = syscall.Kill(s.record.Keeper.Pid, syscall.SIGKILL)
		if _, err := s.Wait(); !errors.Is(err, fork.ErrKeeperLost) {
			t.Fatal(err)
		}
		r, err := s.Close(deadline(t))
		if err != nil || r.Left() || r.Proof != (o.Tracker == Cgroup) {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.ID()); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		check()
	})
}

// TestKeeperStopped: somebody stops the keeper. Reap wakes it.
func TestKeeperStopped(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s := supervise(t, o, "keep", "sleepers")
		_ = syscall.Kill(s.keeper, syscall.SIGSTOP)
		r, err := o.Store.Reap(deadline(t), s.id)
		if err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

// TestReapTwiceAtOnce: both succeed, or the later one finds nothing.
func TestReapTwiceAtOnce(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		for range rounds(t) {
			s := supervise(t, o, "keep", "sleepers")
			var wg sync.WaitGroup
			var succeeded int
			var mu sync.Mutex
			for range 4 {
				wg.Go(func() {
					r, err := o.Store.Reap(deadline(t), s.id)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, ErrNotFound):
					case err != nil || !r.Done():
						t.Errorf("%+v, %v", r, err)
					default:
						succeeded++
					}
				})
			}
			wg.Wait()
			if succeeded == 0 {
				t.Error("none reaped it")
			}
			if left := marked(t, s.id); len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
		}
	})
}

// TestReapUnderSupervisor: a session is reaped while its supervisor waits.
func TestReapUnderSupervisor(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		for range rounds(t) {
			s := begin(t, o, runShell(t, "sleep 1000"))
			go func() {
				if r, err := o.Store.Reap(deadline(t), s.ID()); err != nil || !r.Done() {
					t.Errorf("%+v, %v", r, err)
				}
			}()
			ws, err := s.Wait()
			if err != nil || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("%v, %v", ws, err)
			}
			if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	})
}

// TestReapInTime: a session that can't be ended in time is not reported as ended.
func TestReapInTime(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, runShell(t, "sleep 1000"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	awaitName(t, s.record.Keeper.Pid)
	k, err := proc.Open(s.record.Keeper)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	// Nothing can delay a killed process here. A keeper that is stopped again and again comes
	// close.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = k.Signal(unix.SIGSTOP)
			}
		}
	})
	r, err := st.Reap(ctx, s.ID())
	close(stop)
	wg.Wait()
	_ = k.Signal(unix.SIGCONT)
	if err != nil || r.Done() && len(marked(t, s.ID())) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReapLate: a Reap without any time left, as during a fork bomb, still stops what it saw,
// so that the next one has less to do.
func TestReapLate(t *testing.T) {
	o := Options{Tracker: Subtree, Store: tempStore(t)}
	s := supervise(t, o, "keep", "sleepers")
	eventually(t, "all processes run", func() bool { return sleeping(t, s.id, 5) })
	if err := unix.Kill(s.keeper, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	eventually(t, "the command is dead, the others live", func() bool { return len(one(t, o.Store).Procs) == 5 })
	late, cancel := context.WithCancel(context.Background())
	cancel()
	eventually(t, "all are stopped", func() bool { // the kernel wakes some if the command ends just then
		r, err := o.Store.Reap(late, s.id)
		if err != nil || r.Removed || len(r.Survivors) == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		return !slices.ContainsFunc(r.Survivors, func(p Proc) bool { return !p.Stopped() })
	})
	r, err := o.Store.Reap(deadline(t), s.id)
	if err != nil || r.Left() || r.Killed == 0 || len(marked(t, s.id)) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}
