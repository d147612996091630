package track

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// bombs never end by themselves, so they must run in a PID namespace with a limit.
func bombs() map[string]func() {
	return map[string]func(){
		"bomb":         func() { say("ready"); rawChild(rawBomb); rawPause() },
		"bombsetsid":   func() { say("ready"); rawChild(rawBombSetsid); rawPause() },
		"bombhop":      func() { attackHoppers(); say("ready"); rawChild(rawBomb); rawPause() },
		"zombieleader": func() { playZombieLeader() },
	}
}

//go:nosplit
//go:norace
func rawBomb() {
	for {
		rawFork(0)
	}
}

//go:nosplit
//go:norace
func rawBombSetsid() {
	for {
		if rawFork(0) == 0 {
			raw(unix.SYS_SETSID, 0, 0, 0)
		}
	}
}

// playSupervisor runs a session in a separate process, for tests that kill supervisors. Its
// arguments are the store's directory, the tracker, then flags.
func playSupervisor(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	o := Options{Store: st, Tracker: Kind(args[1]), Confined: true, Scoped: true}
	o.Keep = strings.Contains(args[2], "keep")
	s, err := Begin(o)
	if err != nil {
		panic(err)
	}
	c := attackCommand(args[3])
	if err := s.Start(c); err != nil {
		panic(err)
	}
	fmt.Println(s.ID(), s.record.Keeper.Pid, s.Pid())
	if strings.Contains(args[2], "wait") {
		_, _ = s.Wait()
	}
	time.Sleep(2 * testkit.Patience) // not select {}, which Go without cgo reports as a deadlock
}

// playSlowStart starts a session whose command executes when this program's standard
// input ends.
func playSlowStart(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	s, err := Begin(Options{Store: st, Tracker: Kind(args[1]), Confined: true, Scoped: true})
	if err != nil {
		panic(err)
	}
	c := attackCommand("sleepers")
	c.Path, c.Args = args[2], []string{"sh", "-c", "sleep 1000"}
	b := fork.Put(c.Memory(), byte(0))
	in, err := unix.Dup(0) // the command gets another one
	if err != nil {
		panic(err)
	}
	c.Steps = []fork.Step{{Name: "read(2)", Nr: unix.SYS_READ, Args: [6]uintptr{uintptr(in), uintptr(unsafe.Pointer(b)), 1}}}
	if err := s.Start(c); err == nil || args[2] != "/missing" {
		panic(err)
	}
	time.Sleep(2 * testkit.Patience)
}

// playExec becomes a command in a session: the store's directory is in the
// environment.
func playExec() {
	st, err := OpenStoreAt(os.Getenv("STORE"))
	if err != nil {
		panic(err)
	}
	s, err := Begin(Options{Store: st, Name: os.Getenv("PLAY"), Exec: true, Tracker: Kind(os.Getenv("TRACKER")), Confined: true, Scoped: true})
	if err != nil {
		panic(err)
	}
	panic(s.Start(attackCommand(os.Getenv("PLAY"))))
}

// playNested begins a session within a session, and waits.
func playNested(args []string) {
	st, err := OpenStoreAt(args[0])
	if err != nil {
		panic(err)
	}
	s, err := Begin(Options{Store: st, Confined: true, Scoped: true, Name: "inner"})
	if err != nil {
		say("error " + err.Error())
		os.Exit(1)
	}
	c := attackCommand("sleepers")
	if err := s.Start(c); err != nil {
		say("error " + err.Error())
		os.Exit(1)
	}
	say("inner " + s.ID() + " " + string(s.choice.Kind))
	_, _ = s.Wait()
	_, _ = s.Close(context.Background())
	say("inner ended")
	time.Sleep(2 * testkit.Patience)
}

// attackCommand is a confined command that plays the named program, for
// helpers that begin sessions themselves.
func attackCommand(name string) *fork.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	c := &fork.Command{
		Path: self, Args: []string{name}, Dir: "/", Env: setEnv(os.Environ(), helperEnv, name),
		Files: []*os.File{null, os.Stdout, null},
	}
	if name == "hider" {
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "(env -i setsid sleep $HIDDEN &); exec sleep 1000"}
	}
	if name == "sleepers" {
		// Six processes and never more; short-lived ones come first.
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "(setsid sh -c 'sleep 1000 & sleep 1000' &); sleep 1000 & setsid sleep 1000 & exec sleep 1000"}
	}
	if abi := domainCaps().landlock; abi >= domainABI {
		steps, done, err := domainSteps(abi)
		if err != nil {
			panic(err)
		}
		c.Steps, c.Cleanup = steps, []func(){done}
	}
	return c
}

// warmUp makes Go keep some spare threads, since it gets no new ones when the bomb has filled
// the process table.
func warmUp() {
	var all, ended sync.WaitGroup
	all.Add(12)
	for range 12 {
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	ended.Wait()
}

// ownProc gives a PID namespace its own /proc.
func ownProc() {
	_ = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Println("skip: no /proc for the namespace:", err)
		os.Exit(77)
	}
}

// playHopControl is the init of a PID namespace. It shows that hoppers survive when their
// process group and all that a scan of /proc finds are killed.
func playHopControl() {
	ownProc()
	if !testkit.Within(testkit.Patience, hoppersEscape) { // now and then a scan does find all of them
		os.Exit(1)
	}
}

func hoppersEscape() bool {
	r, w, _ := os.Pipe()
	defer r.Close()
	c := exec.Command("/proc/self/exe")
	c.Env = setEnv(os.Environ(), helperEnv, "hoppers")
	c.Stdout = w
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		panic(err)
	}
	w.Close()
	_, _ = r.Read(make([]byte, 6))
	_ = c.Wait()
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	t, _ := proc.Snapshot()
	for pid := range t.Procs {
		if pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = r.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := r.Read(make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

// playBombHost is the init of a PID namespace with a limit on processes. It runs a bomb in a
// session, and succeeds if nothing of it is left.
func playBombHost(args []string) {
	check := func(err error) {
		if err != nil {
			fmt.Println("bombhost:", err)
			os.Exit(1)
		}
	}
	ownProc()
	if uid, err := strconv.Atoi(os.Getenv("BECOME")); err == nil {
		check(errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid)))
	}
	check(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 100, Max: 100}))
	dir, err := os.MkdirTemp("/tmp", "zsbx-bomb-")
	check(err)
	defer os.RemoveAll(dir)
	st, err := OpenStoreAt(dir)
	check(err)
	n, err := strconv.Atoi(args[2])
	check(err)
	warmUp()
	for range n {
		s, err := Begin(Options{Store: st, Tracker: Kind(args[0]), Confined: true, Scoped: true})
		check(err)
		c := attackCommand(args[1])
		c.Path = "/proc/self/exe" // go test's own directory is closed to BECOME
		r, w, err := os.Pipe()
		check(err)
		c.Files[1] = w
		check(s.Start(c))
		w.Close()
		_, err = r.Read(make([]byte, 6))
		check(err)
		// It may never stay at the limit for long, but a bomb that is killed early counts, too.
		testkit.Within(200*time.Millisecond, func() bool {
			t, err := proc.Snapshot()
			return err == nil && len(t.Procs) > 90
		})
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		t0 := time.Now()
		rep, err := s.Close(ctx)
		fmt.Println("all ended after", time.Since(t0).Round(time.Millisecond))
		check(err)
		cancel()
		if !rep.Done() {
			check(fmt.Errorf("not done: %d survivors, %v, %s", len(rep.Survivors), rep.Methods, rep.Unproved))
		}
		_ = r.SetReadDeadline(time.Now().Add(testkit.Patience))
		if _, err := r.Read(make([]byte, 64)); !errors.Is(err, io.EOF) {
			check(fmt.Errorf("something still has the pipe open: %w", err))
		}
		r.Close()
		t, err := proc.Snapshot()
		check(err)
		for pid, p := range t.Procs {
			if pid != os.Getpid() && !p.Dead() && p.Name != keeperName { // the last keeper is just ending
				check(fmt.Errorf("left: %+v", p))
			}
		}
	}
}
