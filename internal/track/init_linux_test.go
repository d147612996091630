package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// TestInit: init of a PID namespace, as in a container, begins sessions. With another
// namespace's /proc that is refused, since its numbers mean other processes.
func TestInit(t *testing.T) {
	for _, act := range []string{"foreign", "begin", "become"} {
		out, err := inNamespace(t, "inithost", act, t.TempDir())
		if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == 77 {
			testkit.Lacks(t, testkit.UserNS, out)
		}
		if err != nil || out != "" {
			t.Errorf("%s: %v\n%s", act, err, out)
		}
	}
}

// playInitHost is the init of a PID namespace. It prints nothing if all is well.
func playInitHost(args []string) {
	act, dir := args[0], args[1]
	st, err := OpenStoreAt(dir)
	if err != nil {
		panic(err)
	}
	if act != "foreign" {
		ownProc()
	}
	if act == "hide" {
		options := "hidepid=2"
		if gid := os.Getenv("BECOME"); gid != "" {
			options += ",gid=" + gid // else root's group would see all
		}
		if err := unix.Mount("proc", "/proc", "proc", 0, options); err != nil {
			fmt.Println("skip: no such /proc:", err)
			os.Exit(77)
		}
		runtime.LockOSThread()
		const noRoot = 1 // SECBIT_NOROOT: uid 0 gets no capabilities by execve(2)
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
			panic(err)
		}
		panic(unix.Exec("/proc/self/exe", append([]string{"init"}, args[1:]...), setEnv(os.Environ(), helperEnv, "hiddenhost")))
	}
	begin := func() (*Session, error) {
		s, err := Begin(Options{Store: st, Name: "init", Exec: act == "become", Confined: true, Scoped: true})
		if err != nil {
			return nil, err
		}
		c := attackCommand("sleepers")
		c.Args[2] = "while [ ! -e " + filepath.Join(dir, "done") + " ]; do sleep 0.05; done"
		return s, s.Start(c)
	}
	switch act {
	case "foreign":
		if _, err := begin(); err == nil {
			fmt.Println("begun with the /proc of another PID namespace")
		}
		if _, err := st.Reap(context.Background(), "init"); err == nil {
			fmt.Println("reaped with the /proc of another PID namespace")
		}
	case "begin":
		if _, err := begin(); err != nil {
			panic(err)
		}
		if ls, err := st.List(); err != nil || len(ls) != 1 || ls[0].Err != nil || ls[0].Record.Supervisor.Pid != 1 || ls[0].Life != Running {
			fmt.Printf("%+v, %v\n", ls, err)
		}
		if r, err := st.Reap(context.Background(), "init"); err != nil || !r.Done() || r.Killed == 0 {
			fmt.Printf("%+v, %v\n", r, err)
		}
	case "become":
		c := exec.Command("/proc/self/exe", dir)
		c.Env, c.Stdout = setEnv(os.Environ(), helperEnv, "initreaper"), os.Stdout
		if err := c.Start(); err != nil {
			panic(err)
		}
		_, err := begin()
		panic(err)
	}
}

// playInitReaper reaps the session whose command is init, which is refused.
func playInitReaper(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	running := func() bool {
		ls, err := st.List()
		return err == nil && len(ls) == 1 && ls[0].Life == Running && len(ls[0].Procs) == 2 // and what it sleeps by
	}
	if !testkit.Within(testkit.Patience, running) {
		ls, err := st.List()
		fmt.Printf("not running: %+v, %v\n", ls, err)
	}
	if r, err := st.Reap(context.Background(), "init"); !errors.Is(err, ErrInit) || r.Killed != 0 || r.Removed {
		fmt.Printf("%+v, %v\n", r, err)
	}
	_ = os.WriteFile(filepath.Join(args[0], "done"), nil, 0o600)
}

// TestHidden: if /proc is mounted with hidepid, a kept session's keeper is found if it has a
// domain. Another one can't be seen, which must not count as its end.
func TestHidden(t *testing.T) {
	for _, k := range []Kind{Domain, Subtree} {
		if k == Domain {
			requireDomain(t)
		}
		out, err := inNamespace(t, "inithost", "hide", t.TempDir(), string(k))
		if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == 77 {
			testkit.Lacks(t, testkit.UserNS, out)
		}
		if err != nil || out != "" {
			t.Errorf("%s: %v\n%s", k, err, out)
		}
	}
}

// playHidden is init without capabilities. It can't see processes that are not dumpable.
func playHidden(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	c := exec.Command("/proc/self/exe", args...)
	c.Env, c.Stdout = setEnv(os.Environ(), helperEnv, "hiddenkeeper"), os.Stdout
	if err := c.Run(); err != nil {
		panic(err)
	}
	var ls []Info
	testkit.Within(testkit.Patience, func() bool { // the command may not have been executed yet
		ls, err = st.List()
		return err != nil || len(ls) == 1 && len(ls[0].Procs) > 0
	})
	if err != nil || len(ls) != 1 || ls[0].Life != Running || len(ls[0].Procs) == 0 {
		fmt.Printf("%+v, %v\n", ls, err)
	}
	r, err := st.Reap(context.Background(), ls[0].ID)
	if args[1] == string(Subtree) {
		if !errors.Is(err, ErrLocked) || r.Killed != 0 || r.Removed {
			fmt.Printf("the hidden keeper: %+v, %v\n", r, err)
		}
		_ = unix.Kill(ls[0].Record.Keeper.Pid, unix.SIGTERM)
		testkit.Within(testkit.Patience, func() bool { ls, _ := st.List(); return len(ls) == 1 && ls[0].Life == Ended })
		r, err = st.Reap(context.Background(), ls[0].ID)
	}
	if err != nil || !r.Done() || !r.Removed {
		fmt.Printf("%+v, %v\n", r, err)
	}
}

// playHiddenKeeper leaves a session to its keeper.
func playHiddenKeeper(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	s, err := Begin(Options{Store: st, Tracker: Kind(args[1]), Keep: true, Confined: true, Scoped: true})
	if err != nil {
		panic(err)
	}
	if err := s.Start(attackCommand("sleepers")); err != nil {
		panic(err)
	}
	if r, err := s.Close(context.Background()); err != nil || !r.Kept {
		fmt.Printf("%+v, %v\n", r, err)
	}
}

// TestFirstThreadEnded: a process whose first thread has ended is not dead while other threads
// run.
func TestFirstThreadEnded(t *testing.T) {
	st := tempStore(t)
	i := startExec(t, st, "zombieleader", 1)
	pid := i.Record.Command.Pid
	eventually(t, "its first thread ends", func() bool {
		s, err := procfs.LookAt(procfs.Path(pid, ""))
		return err == nil && s.State == "Z"
	})
	if id, hidden := proc.Getenv(pid, SessionEnv); id != i.ID || hidden { // by which descendants are found
		t.Errorf("it says that it is of %q, hidden: %v", id, hidden)
	}
	if ls, err := st.List(); err != nil || len(ls) != 1 || ls[0].Life != Running || len(ls[0].Procs) != 1 {
		t.Errorf("%+v, %v", ls, err)
	}
	if r, err := st.Reap(deadline(t), i.ID); err != nil || r.Killed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if unix.Kill(pid, 0) == nil {
		s, err := procfs.Look(pid)
		if err == nil && s.State != "Z" {
			t.Errorf("it keeps running: %+v", s)
		}
	}
}
