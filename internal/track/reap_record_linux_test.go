package track

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

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
	id, err := proc.Identify(victim.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	alive := func() bool {
		p, err := proc.Look(victim.Process.Pid)
		return err == nil && !p.Dead()
	}
	reused := id
	reused.Start++
	forge := func(t *testing.T, h Holder) (*Store, string) {
		o := Options{Store: tempStore(t), Tracker: Subtree}
		s := begin(t, o, runShell(t, "exit 0"))
		for { // until the keeper has written its last word
			if _, err := s.Next(); err != nil {
				break
			}
		}
		s.opts.Keep = true // leave the files
		s.record.Holder = h
		_ = s.file.Truncate(0)
		_ = writeRecord(s.file, &s.record)
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
	t.Run("command", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Subtree, Command: id})
		if r, err := st.Reap(deadline(t), ref); err != nil || r.Proof || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("cgroup", func(t *testing.T) {
		st, ref := forge(t, Holder{Tracker: Cgroup, Keeper: reused, Cgroup: &cgroup.Group{Path: "/sys/fs/cgroup"}})
		if i := one(t, st); i.Err == nil {
			t.Errorf("%+v", i)
		}
		if r, err := st.Reap(deadline(t), ref); err != nil || r.Proof || !alive() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	if !alive() {
		t.Fatal("the victim is dead")
	}
}

// TestForgedKeeper: if a record names a keeper that is none, processes below that are not the
// session's.
func TestForgedKeeper(t *testing.T) {
	table := &proc.Table{Procs: map[int]Proc{
		1: {ID: ProcID{Pid: 1, Start: 1}, Name: "init"}, 500: {ID: ProcID{Pid: 500, Start: 5}, Parent: 1, Name: "victim"},
		600: {ID: ProcID{Pid: 600, Start: 6}, Parent: 1, Name: keeperName}, 601: {ID: ProcID{Pid: 601, Start: 7}, Parent: 600, Name: "own"},
	}}
	for keeper, want := range map[ProcID]int{{Pid: 1, Start: 1}: 0, {Pid: 600, Start: 6}: 1} {
		v := &view{Table: table, started: map[string][]int{}}
		f := &found{record: Record{Version: 1, ID: "x", Holder: Holder{Keeper: keeper}}}
		if got := v.procs(f); len(got) != want {
			t.Errorf("%v: %+v", keeper, got)
		}
	}
}

// TestReapAfterReboot: the record is from another boot, so its pids mean nothing.
func TestReapAfterReboot(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree, Keep: true}, runShell(t, "sleep 1000 &"))
	_, _ = s.Wait()
	keeper := s.record.Keeper
	s.record.Boot = "00000000-0000-0000-0000-000000000000"
	if err := writeRecord(s.file, &s.record); err != nil {
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
	if p, err := proc.Look(keeper.Pid); err != nil || p.Dead() {
		t.Errorf("a process was signalled by a pid from before the restart")
	}
	s.release()
}

// TestReapElsewhere: another machine's or container's session can't be reaped here.
func TestReapElsewhere(t *testing.T) {
	for _, change := range []func(r *Record){
		func(r *Record) { r.PidNS++ },
		func(r *Record) { r.Boot, r.Host = "x", "somewhere" },
	} {
		st := tempStore(t)
		s := begin(t, Options{Store: st, Tracker: Subtree}, runShell(t, "sleep 1000"))
		was := s.record
		change(&s.record)
		_ = writeRecord(s.file, &s.record)
		if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, ErrElsewhere) {
			t.Errorf("%v", err)
		}
		if i := one(t, st); i.Life != Elsewhere {
			t.Errorf("%+v", i)
		}
		s.record = was
		_ = writeRecord(s.file, &was)
		if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestFilesRemovedByHand: a session whose file is gone can't be found, but still ends with its
// supervisor.
func TestFilesRemovedByHand(t *testing.T) {
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, runShell(t, "sleep 1000"))
	if err := os.RemoveAll(st.Dirs()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestForeignSession: the error says that a session belongs to another user.
func TestForeignSession(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	st := tempStore(t)
	s := begin(t, Options{Store: st, Tracker: Subtree}, runShell(t, "sleep 1000"))
	path := filepath.Join(st.Dirs()[0], s.ID()+sessionFile)
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if i := one(t, st); !errors.Is(i.Err, errForeign) || !strings.Contains(i.Err.Error(), "65534") {
		t.Errorf("%+v", i)
	}
	_ = os.Chown(path, 0, 0)
	if err := os.Chown(st.Dirs()[0], 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Reap(deadline(t), s.ID()); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	if _, err := Begin(Options{Store: st}); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	_ = os.Chown(st.Dirs()[0], 0, 0)
	if r, err := s.Close(deadline(t)); err != nil || !r.Done() {
		t.Errorf("%+v, %v", r, err)
	}
}
