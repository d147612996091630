package track

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// startExec starts a process that replaces itself by the named program, and waits until the
// session has procs processes.
func startExec(t *testing.T, st *Store, play string, procs int, env ...string) Info {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(append(os.Environ(), helperEnv+"=execsession", "PLAY="+play, "HIDDEN="+hidden, "STORE="+filepath.Dir(st.Dirs()[0])), env...)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	var i Info
	eventually(t, "it runs", func() bool {
		if ls, _ := st.List(); len(ls) == 1 {
			i = ls[0]
		}
		return len(i.Procs) == procs && i.Record.Tracker != "" && i.Record.Exec && i.Life == Running
	})
	if !i.Record.Exec || i.Record.Command.Pid != c.Process.Pid || !i.Record.Keeper.IsZero() || i.Life != Running {
		t.Errorf("%+v", i)
	}
	return i
}

// TestExec: what a process started after it became its command is found and ended, and the
// report says that this is no proof.
func TestExec(t *testing.T) {
	st := tempStore(t)
	i := startExec(t, st, "sleepers", 6)
	if i.Record.Tracker != Process {
		t.Errorf("tracked by %s", i.Record.Tracker)
	}
	r, err := st.Reap(deadline(t), i.ID)
	if err != nil || r.Proof || r.Unproved == "" || r.Left() || !r.Removed || r.Killed != 6 {
		t.Fatalf("%+v, %v", r, err)
	}
	if left := marked(t, i.ID); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
}

// hidden is how long the hider's daemon sleeps, which identifies it.
var hidden = "1" + strconv.Itoa(os.Getpid())

// escaped lists the daemons of hiders.
func escaped(t *testing.T) (pids []int) {
	t.Helper()
	all, err := proc.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for pid, p := range all.Procs {
		if one := []Proc{p}; p.Name == "sleep" {
			proc.Fill(one)
			if slices.Equal(one[0].Argv, []string{"sleep", hidden}) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestExecHides: what dropped the session's id from its environment is not found, and the
// report says that nothing is proved.
func TestExecHides(t *testing.T) {
	st := tempStore(t)
	i := startExec(t, st, "hider", 1)
	eventually(t, "what hides is there, and who started it is gone", func() bool {
		return len(escaped(t)) == 1 && sleeping(t, i.ID, 1) && len(one(t, st).Procs) == 1
	})
	if r, err := st.Reap(deadline(t), i.ID); err != nil || r.Killed != 1 || r.Proof {
		t.Errorf("%+v, %v", r, err)
	}
	for _, p := range escaped(t) {
		_ = unix.Kill(p, unix.SIGKILL)
	}
}

// TestExecSecret: the command itself is found even if its environment can't be read.
func TestExecSecret(t *testing.T) {
	st := tempStore(t)
	i := startExec(t, st, "secret", 1)
	if r, err := st.Reap(deadline(t), i.ID); err != nil || r.Killed != 1 || r.Left() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestExecEnded: a session whose command ended and left nothing is over.
func TestExecEnded(t *testing.T) {
	st := tempStore(t)
	i := startExec(t, st, "secret", 1)
	if i.Record.Name != "secret" {
		t.Errorf("the name is %q", i.Record.Name)
	}
	if _, err := Begin(Options{Store: st, Name: "secret"}); !errors.Is(err, ErrNameTaken) {
		t.Errorf("the name of a session that runs was given away: %v", err)
	}
	p, err := os.FindProcess(i.Record.Command.Pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Kill()
	eventually(t, "it is over", func() bool { ls, _ := st.List(); return len(ls) == 1 && ls[0].Life == Ended })
	if rs, err := st.Prune(deadline(t)); err != nil || len(rs) != 1 || !rs[0].Removed || rs[0].Killed != 0 {
		t.Errorf("%+v, %v", rs, err)
	}
}

// TestExecTrackers: a tracker that needs a supervisor is refused.
func TestExecTrackers(t *testing.T) {
	for _, k := range []Kind{Domain, Cgroup, Subtree} {
		var te *TrackerError
		if _, err := Begin(Options{Store: tempStore(t), Exec: true, Tracker: k}); !errors.As(err, &te) || te.Kind != k || te.Hint != "--track auto" {
			t.Errorf("%s: %v", k, err)
		}
	}
}
