package track

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// supervised is a session in a process of its own.
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

// awaitName waits until a keeper is all settled.
func awaitName(t *testing.T, keeper int) {
	t.Helper()
	eventually(t, "the keeper has its name", func() bool {
		p, err := readProc(keeper)
		return err == nil && p.Name == keeperName
	})
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("after 5 s still not: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func one(t *testing.T, st *Store) Info {
	t.Helper()
	ls, err := st.List()
	if err != nil || len(ls) != 1 {
		t.Fatalf("%+v, %v", ls, err)
	}
	return ls[0]
}

// TestSupervisorKilled: the keeper sees it and ends the session; what is left
// in the store is found to be ended, and removed.
func TestSupervisorKilled(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		for range rounds(t) {
			s := supervise(t, o, "-", "sleepers")
			eventually(t, "all processes run", func() bool { return len(marked(t, s.id)) == 6 })
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

// TestSupervisorKilledKeep: with Keep the session goes on without it.
func TestSupervisorKilledKeep(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s := supervise(t, o, "keep", "sleepers")
		eventually(t, "all processes run", func() bool { return len(marked(t, s.id)) == 6 })
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		time.Sleep(20 * time.Millisecond)
		if i := one(t, o.Store); i.Life != Running || len(i.Procs) != 6 {
			t.Fatalf("%+v", i)
		}
		if rs, err := o.Store.Prune(deadline(t)); err != nil || len(rs) != 0 {
			t.Fatalf("a living session was pruned: %+v, %v", rs, err)
		}
		r, err := o.Store.Reap(deadline(t), s.id[:8])
		if err != nil || !r.Done() || r.Killed < 3 || len(marked(t, s.id)) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

// TestKeeperKilled: somebody outside kills the keeper. What can be found is
// killed all the same; without a control group that is no proof, and said so.
func TestKeeperKilled(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		s := supervise(t, o, "keep", "sleepers")
		eventually(t, "all processes run", func() bool { return len(marked(t, s.id)) == 6 })
		if err := syscall.Kill(s.keeper, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		eventually(t, "the loss is seen", func() bool { return one(t, o.Store).Life == Lost })
		if i := one(t, o.Store); len(i.Procs) != 6 {
			t.Errorf("%+v", i)
		}
		r, err := o.Store.Reap(deadline(t), s.id)
		if err != nil || r.Left() || r.Proof != (o.Tracker == Cgroup) || r.Proof == (r.Unproved != "") {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, s.id); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	})
}

// TestKeeperKilledUnderSupervisor: the supervisor learns of it and does the
// same.
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
		eventually(t, "all processes run", func() bool { return len(marked(t, s.ID())) == 6 })
		_ = syscall.Kill(s.holder.Keeper.Pid, syscall.SIGKILL)
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

// TestKeeperStopped: somebody stops the keeper. Reaping wakes it up.
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

// TestReapTwiceAtOnce: both succeed, or the later one finds nothing any more.
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
			s := begin(t, o, shell(t, "sleep 1000"))
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

// TestReapByForgedRecord: a record names processes that are not the session's:
// a reused pid, another program, a control group of the user's. None is
// touched.
func TestReapByForgedRecord(t *testing.T) {
	victim := exec.Command("sleep", "1000")
	victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	id, err := identify(victim.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	alive := func() bool {
		p, err := readProc(victim.Process.Pid)
		return err == nil && !p.dead()
	}
	reused := id
	reused.Start++
	forge := func(t *testing.T, h Holder) (*Store, string) {
		o := Options{Store: tempStore(t), Tracker: Subtree}
		s := begin(t, o, shell(t, "exit 0"))
		for { // until the keeper has written its last word
			if _, err := s.Next(); err != nil {
				break
			}
		}
		s.opts.Keep = true // leave the files
		_ = s.dir.writeHolder(&h)
		_ = s.state.Truncate(0)
		s.release()
		return o.Store, s.ID()
	}
	t.Run("reused pid", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Subtree, Keeper: reused, Command: reused})
		r, err := st.Reap(deadline(t), ref)
		if err != nil || r.Proof || r.Killed != 0 || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("no keeper", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Subtree, Keeper: id})
		if r, err := st.Reap(deadline(t), ref); err == nil || !strings.Contains(err.Error(), "not touched") || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("group", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Group, Command: id})
		if r, err := st.Reap(deadline(t), ref); err != nil || r.Proof || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("command", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Subtree, Command: id})
		if r, err := st.Reap(deadline(t), ref); err != nil || r.Proof || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("cgroup", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Cgroup, Keeper: reused, Cgroup: &CgroupRef{Path: "/sys/fs/cgroup"}})
		if r, err := st.Reap(deadline(t), ref); err == nil || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	if !alive() {
		t.Fatal("the victim is dead")
	}
}

// TestReapAfterReboot: the record is of another boot. Its pids mean nothing.
func TestReapAfterReboot(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree, Keep: true}, shell(t, "sleep 1000 &"))
	_, _ = s.Wait()
	keeper := s.holder.Keeper
	s.record.Boot = "00000000-0000-0000-0000-000000000000"
	if err := s.dir.writeRecord(&s.record); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(keeper.Pid, fork.ReapSignal) }()
	if i := one(t, st); i.Life != Ended || len(i.Procs) != 0 {
		t.Errorf("%+v", i)
	}
	r, err := st.Reap(deadline(t), s.ID())
	if err != nil || !r.Done() || r.How != howReboot || !r.Removed {
		t.Fatalf("%+v, %v", r, err)
	}
	if p, err := readProc(keeper.Pid); err != nil || p.dead() {
		t.Errorf("a process was signalled by a pid from before the restart")
	}
	s.release()
}

// TestReapElsewhere: another machine's or container's session is not for us.
func TestReapElsewhere(t *testing.T) {
	for _, change := range []func(r *Record){
		func(r *Record) { r.PidNS++ },
		func(r *Record) { r.Boot, r.Host = "x", "somewhere" },
	} {
		st := tempStore(t)
		s := begin(t, Options{Store: st, Tracker: Subtree}, shell(t, "sleep 1000"))
		was := s.record
		change(&s.record)
		_ = s.dir.writeRecord(&s.record)
		if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, ErrElsewhere) {
			t.Errorf("%v", err)
		}
		if i := one(t, st); i.Life != Elsewhere {
			t.Errorf("%+v", i)
		}
		s.record = was
		_ = s.dir.writeRecord(&was)
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestFilesRemovedByHand: a session whose files are gone can't be found, but
// ends with its supervisor all the same; one of which only the state is gone
// is reaped without proof.
func TestFilesRemovedByHand(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, shell(t, "sleep 1000"))
	if err := os.RemoveAll(st.Dirs()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
	s = begin(t, Options{Store: st, Tracker: Subtree}, shell(t, "sleep 1000"))
	if err := os.Remove(filepath.Join(st.Dirs()[0], s.ID()+stateFile)); err != nil {
		t.Fatal(err)
	}
	r, err := st.Reap(deadline(t), s.ID())
	if err != nil || r.Proof || r.Left() || len(marked(t, s.ID())) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestForeignSession: what belongs to somebody else is said to.
func TestForeignSession(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, shell(t, "sleep 1000"))
	path := filepath.Join(st.Dirs()[0], s.ID()+stateFile)
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "65534") {
		t.Error(err)
	}
	_ = os.Chown(path, 0, 0)
	if err := os.Chown(st.Dirs()[0], 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	if _, err := Begin(Options{Store: st}); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
	_ = os.Chown(st.Dirs()[0], 0, 0)
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNested: an inner session is reaped alone; the outer takes the inner one
// with it.
func TestNested(t *testing.T) {
	kinds(t, func(t *testing.T, o Options) {
		inner := t.TempDir()
		start := func() (*Session, *bufio.Reader, string) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			c := helper(t, "nested", inner)
			c.Files = []*os.File{c.Files[0], w, c.Files[0]}
			s := begin(t, o, c)
			w.Close()
			b := bufio.NewReader(r)
			_ = r.SetReadDeadline(time.Now().Add(10 * time.Second))
			line, err := b.ReadString('\n')
			f := strings.Fields(line)
			if err != nil || len(f) < 2 || f[0] != "inner" {
				t.Fatalf("%q, %v", line, err)
			}
			if o.Tracker == Domain && f[2] != string(Domain) {
				t.Errorf("the inner tracker is %s", f[2])
			}
			eventually(t, "the inner processes run", func() bool { return len(marked(t, f[1])) == 6 })
			return s, b, f[1]
		}
		st, err := OpenStoreAt(inner)
		if err != nil {
			t.Fatal(err)
		}
		s, out, id := start()
		if r, err := st.Reap(deadline(t), "inner"); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if line, err := out.ReadString('\n'); line != "inner ended\n" || len(marked(t, id)) > 0 {
			t.Fatalf("%q, %v", line, err)
		}
		if p, err := readProc(s.Pid()); err != nil || p.dead() {
			t.Fatal("the outer session was killed with the inner one")
		}
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		s, out, id = start()
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, err := out.ReadString('\n'); !errors.Is(err, io.EOF) || len(marked(t, id)) > 0 {
			t.Fatalf("the inner session outlived the outer one: %v", err)
		}
		if rs, err := st.Prune(deadline(t)); err != nil || len(rs) != 1 {
			t.Fatalf("%+v, %v", rs, err)
		}
	})
}

// TestExec: a process that became its command is held by a keeper beside it.
func TestExec(t *testing.T) {
	requireDomain(t)
	for range rounds(t) {
		st := tempStore(t)
		self, _ := os.Executable()
		c := exec.Command(self)
		c.Env = append(os.Environ(), helperEnv+"=execsession", "STORE="+filepath.Dir(st.Dirs()[0]))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		var i Info
		eventually(t, "it runs", func() bool {
			ls, _ := st.List()
			if len(ls) == 1 {
				i = ls[0]
			}
			return len(i.Procs) == 6
		})
		if !i.Record.Exec || i.Holder.Command.Pid != c.Process.Pid || i.Life != Running {
			t.Errorf("%+v", i)
		}
		r, err := st.Reap(deadline(t), i.ID)
		if err != nil || !r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := marked(t, i.ID); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
		<-ended
	}
}

// TestReapInTime: a session that can't be ended in time is not called ended.
func TestReapInTime(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, shell(t, "sleep 1000"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	awaitName(t, s.holder.Keeper.Pid)
	k, err := openProc(s.holder.Keeper)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	// Nothing can hold a killed process up here; a stopped keeper that is
	// stopped again at once comes close.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = k.signal(unix.SIGSTOP)
			}
		}
	})
	r, err := st.Reap(ctx, s.ID())
	close(stop)
	wg.Wait()
	_ = k.signal(unix.SIGCONT)
	if err != nil || r.Done() && len(marked(t, s.ID())) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}
