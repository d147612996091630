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

	"github.com/zsbx/zsbx/enforce/fork"
)

// helpers are the programs that the test binary plays inside of a session.
// Each says "ready" on its standard output when its processes are in place;
// all of these keep that descriptor open, so that the test can see from
// outside whether one is alive. What follows a raw fork makes system calls
// only.
func helpers() map[string]func(args []string) {
	h := map[string]func([]string){
		"supervisor": playSupervisor,
		"nested":     playNested,
		"hopcontrol": func([]string) { playHopControl() },
		"siege":      func([]string) { playSiege() },
		"mover":      playMover,
		"bombhost":   playBombHost,
		"fullhost":   playFullHost,
		"hello":      func([]string) { say("hello") },
		"execsession": func([]string) {
			playExec()
		},
		"fakekeeper": func([]string) { playFakeKeeper() },
	}
	for name, act := range attacks() {
		h[name] = func([]string) {
			act()
			say("ready")
			os.Exit(0)
		}
	}
	h["thousand"] = func([]string) {
		attackThousand()
		say("ready")
		rawPause()
	}
	for name, act := range bombs() {
		h[name] = func([]string) {
			act()
			os.Exit(0)
		}
	}
	return h
}

func say(s string) { _, _ = syscall.Write(1, []byte(s+"\n")) }

// attacks leave processes behind and return.
func attacks() map[string]func() {
	return map[string]func(){
		"setsid":     func() { rawChild(func() { raw(unix.SYS_SETSID, 0, 0, 0); rawPause() }) },
		"doublefork": func() { rawDaemon(2) },
		"triplefork": func() { rawDaemon(3) },
		"many":       func() { attackMany() },
		"hopper":     func() { rawChild(rawHop) },
		"hoppers":    func() { attackHoppers() },
		"nodump":     func() { raw(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0); rawDaemon(2) },
		"subreaper": func() {
			rawChild(func() { raw(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0); rawDaemon(2); rawPause() })
		},
		"pdeathsig":   func() { raw(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0, 0); rawDaemon(1) },
		"cloneparent": func() { attackCloneParent() },
		"stopped":     func() { rawChild(func() { raw(unix.SYS_KILL, uintptr(unix.Getpid()), uintptr(unix.SIGSTOP), 0) }) },
		"stoppedself": func() { rawChild(rawStopSelf) },
		"ignoring":    func() { attackIgnoring() },
		"ptraced":     func() { rawChild(rawTraced) },
		"vfork":       func() { rawChild(rawVforkBlocked) },
		"zombie":      func() { attackZombieLeader() },
		"namespaces":  func() { attackNamespaces() },
		"renamed":     func() { attackRenamed() },
		"shells":      func() { attackShells() },
		"otheruid":    func() { rawChild(rawOtherUID) },
	}
}

// raw makes a system call without a word to Go's scheduler.
//
//go:nosplit
//go:norace
func raw(nr, a, b, c uintptr) int {
	r, _, errno := syscall.RawSyscall(nr, a, b, c)
	if errno != 0 {
		return -int(errno)
	}
	return int(r)
}

// rawFork forks. The child has one thread and may only make raw calls.
//
//go:norace
func rawFork(flags uintptr) int {
	r, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	return int(r)
}

//go:norace
func rawExit() {
	for {
		raw(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// rawPause stays for a while: a test that was killed must leave nothing for
// ever.
//
//go:norace
func rawPause() {
	ts := unix.Timespec{Sec: 120}
	raw(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	rawExit()
}

// rawChild forks a child that runs f.
//
//go:norace
func rawChild(f func()) {
	runtime.LockOSThread()
	if rawFork(0) == 0 {
		f()
		rawExit()
	}
}

// rawDaemon forks depth times, each parent but the first gone, each child in a
// session of its own.
//
//go:norace
func rawDaemon(depth int) {
	runtime.LockOSThread()
	if pid := rawFork(0); pid != 0 {
		raw(unix.SYS_WAIT4, uintptr(pid), 0, unix.WNOHANG)
		return
	}
	for i := 1; i < depth; i++ {
		raw(unix.SYS_SETSID, 0, 0, 0)
		if rawFork(0) != 0 {
			rawExit()
		}
	}
	rawPause()
}

// rawHop forks and exits, over and over: its pid changes all the time. It ends
// by itself after some seconds, for nothing else could end it if a test fails.
//
//go:norace
func rawHop() {
	ts := unix.Timespec{Nsec: 50_000}
	for range 40_000 {
		raw(unix.SYS_SETSID, 0, 0, 0)
		if pid := rawFork(0); pid > 0 {
			rawExit()
		}
		raw(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	}
	rawExit()
}

//go:norace
func attackHoppers() {
	for range 8 {
		rawChild(rawHop)
	}
}

//go:norace
func attackThousand() {
	for range 1000 {
		rawChild(rawPause)
	}
}

//go:norace
func attackMany() {
	for range 40 {
		rawDaemon(2)
	}
}

//go:norace
func attackCloneParent() {
	runtime.LockOSThread()
	if rawFork(unix.CLONE_PARENT) == 0 { // a sibling: the keeper's child
		raw(unix.SYS_SETSID, 0, 0, 0)
		rawPause()
	}
}

//go:norace
func rawStopSelf() {
	for {
		raw(unix.SYS_KILL, uintptr(raw(unix.SYS_GETPID, 0, 0, 0)), uintptr(unix.SIGSTOP), 0)
	}
}

//go:norace
func attackIgnoring() {
	mask := ^uint64(0)
	rawChild(func() {
		raw6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8)
		rawPause()
	})
}

//go:nosplit
//go:norace
func raw6(nr, a, b, c, d uintptr) int {
	r, _, errno := syscall.RawSyscall6(nr, a, b, c, d, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	return int(r)
}

// rawTraced is a tracer with a traced child that is stopped.
//
//go:norace
func rawTraced() {
	if rawFork(0) == 0 {
		raw(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
		rawStopSelf()
	}
	rawPause()
}

// rawVforkBlocked sleeps in vfork(2) until its child would execute.
//
//go:norace
func rawVforkBlocked() {
	if rawFork(unix.CLONE_VFORK) == 0 {
		raw(unix.SYS_SETSID, 0, 0, 0)
		rawPause()
	}
}

// attackZombieLeader leaves a process whose first thread has ended while
// another one lives.
func attackZombieLeader() {
	self, _ := os.Executable()
	c := exec.Command(self)
	c.Env = append(os.Environ(), helperEnv+"=zombieleader")
	c.Stdout = os.Stdout
	out, _ := c.StderrPipe()
	if err := c.Start(); err != nil {
		panic(err)
	}
	_, _ = out.Read(make([]byte, 1))
}

func playZombieLeader() {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		panic("not the first thread")
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, _ = os.Stderr.WriteString("x")
		select {}
	}()
	go func() { // keeps the runtime from calling it a deadlock
		for {
			time.Sleep(time.Hour)
		}
	}()
	raw(unix.SYS_EXIT, 0, 0, 0)
}

// attackNamespaces leaves the init of a PID namespace with a child, in a user
// namespace of its own; plain daemons where there are none to be had.
func attackNamespaces() {
	c := exec.Command("sleep", "1000")
	c.Stdout = os.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID, Setsid: true}
	if err := c.Start(); err != nil {
		rawDaemon(3)
	}
}

// attackRenamed hides what can be hidden: name, arguments, environment.
func attackRenamed() {
	c := exec.Command("sh", "-c", "exec setsid sleep 1000")
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	c.Args[0] = "zsbx-keeper"
	c.Stdout = os.Stdout
	_ = c.Start()
}

// rawOtherUID becomes another user, where that is allowed.
//
//go:norace
func rawOtherUID() {
	raw(unix.SYS_SETRESUID, 65534, 65534, 65534)
	rawPause()
}

// playFakeKeeper leaves a daemon that does all that makes a keeper look like one.
func playFakeKeeper() {
	rawChild(rawFakeKeeper)
	say("ready")
	time.Sleep(2 * time.Minute)
}

//go:norace
func rawFakeKeeper() {
	if rawFork(0) != 0 {
		rawExit()
	}
	mask := ^uint64(0)
	name := [...]byte{'z', 's', 'b', 'x', '-', 'k', 'e', 'e', 'p', 'e', 'r', 0}
	raw(unix.SYS_SETSID, 0, 0, 0)
	raw(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0)
	raw6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8)
	rawPause()
}

// playSiege signals and traces the keeper in every way there is, and tells
// which of them the kernel allowed.
func playSiege() {
	keeper := os.Getppid()
	k := uintptr(keeper)
	var siginfo [128]byte // all zero: SI_USER, from nobody
	*(*int32)(unsafe.Pointer(&siginfo[8])) = -1
	pidfd, err := unix.PidfdOpen(keeper, 0)
	if err != nil {
		say("no pidfd: " + err.Error())
	}
	ways := map[string]func() int{
		"kill":       func() int { return raw(unix.SYS_KILL, k, uintptr(unix.SIGKILL), 0) },
		"kill 0":     func() int { return raw(unix.SYS_KILL, k, 0, 0) },
		"kill group": func() int { return raw(unix.SYS_KILL, -k, uintptr(unix.SIGKILL), 0) },
		"SIGSTOP":    func() int { return raw(unix.SYS_KILL, k, uintptr(unix.SIGSTOP), 0) },
		"SIGCONT":    func() int { return raw(unix.SYS_KILL, k, uintptr(unix.SIGCONT), 0) },
		"tkill":      func() int { return raw(unix.SYS_TKILL, k, uintptr(unix.SIGKILL), 0) },
		"tgkill":     func() int { return raw(unix.SYS_TGKILL, k, k, uintptr(unix.SIGKILL)) },
		"rt_sigqueueinfo": func() int {
			return raw(unix.SYS_RT_SIGQUEUEINFO, k, uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(&siginfo)))
		},
		"rt_tgsigqueueinfo": func() int {
			return raw6(unix.SYS_RT_TGSIGQUEUEINFO, k, k, uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(&siginfo)))
		},
		"pidfd_send_signal": func() int { return raw6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(pidfd), uintptr(unix.SIGKILL), 0, 0) },
		"pidfd_getfd":       func() int { return raw(unix.SYS_PIDFD_GETFD, uintptr(pidfd), 0, 0) },
		"ptrace attach":     func() int { return raw6(unix.SYS_PTRACE, unix.PTRACE_ATTACH, k, 0, 0) },
		"ptrace seize":      func() int { return raw6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, k, 0, 0) },
		"/proc/k/mem":       func() int { fd, err := unix.Open(procPath(keeper, "mem"), unix.O_RDWR, 0); return openAnswer(fd, err) },
		"/proc/k/fd/1":      func() int { fd, err := unix.Open(procPath(keeper, "fd/1"), unix.O_RDWR, 0); return openAnswer(fd, err) },
	}
	for name, try := range ways {
		if r := try(); r >= 0 {
			say("allowed: " + name)
		}
	}
	// SIGIO, by way of a pipe that the keeper is said to own: the kernel drops
	// it without a word, and the keeper must live.
	var p [2]int
	_ = unix.Pipe(p[:])
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, keeper)
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, int(unix.SIGKILL))
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC)
	_, _ = unix.Write(p[1], []byte("x"))
	time.Sleep(10 * time.Millisecond)
	say("done")
	rawPause()
}

func openAnswer(fd int, err error) int {
	if err != nil {
		return -1
	}
	unix.Close(fd)
	return fd
}

// playMover moves itself to the group that is given, and makes another below
// that, with a frozen process.
func playMover(args []string) {
	move := func(group string, pid int) error {
		return os.WriteFile(group+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0)
	}
	frozen := args[0] + "/a/b"
	c := exec.Command("sleep", "1000")
	c.Stdout = os.Stdout
	err := errors.Join(os.MkdirAll(frozen, 0o755), c.Start())
	err = errors.Join(err, move(frozen, c.Process.Pid), os.WriteFile(frozen+"/cgroup.freeze", []byte("1"), 0), move(args[1], os.Getpid()))
	if err != nil {
		say("error: " + err.Error())
		os.Exit(1)
	}
	say("ready")
	rawPause()
}

func attackShells() {
	c := exec.Command("sh", "-c", `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); nohup sleep 1000 & exit 0`)
	c.Stdout = os.Stdout
	_ = c.Run()
}

// bombs never end by themselves; they belong into a PID namespace with a limit.
func bombs() map[string]func() {
	return map[string]func(){
		"bomb":         func() { say("ready"); rawChild(rawBomb); rawPause() },
		"bombsetsid":   func() { say("ready"); rawChild(rawBombSetsid); rawPause() },
		"bombhop":      func() { attackHoppers(); say("ready"); rawChild(rawBomb); rawPause() },
		"zombieleader": func() { playZombieLeader() },
	}
}

//go:norace
func rawBomb() {
	for {
		rawFork(0)
	}
}

//go:norace
func rawBombSetsid() {
	for {
		if rawFork(0) == 0 {
			raw(unix.SYS_SETSID, 0, 0, 0)
		}
	}
}

// playSupervisor runs a session in a process of its own, for tests that kill
// supervisors: the store's directory, the tracker, then flags.
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
	fmt.Println(s.ID(), s.holder.Keeper.Pid, s.Pid())
	if strings.Contains(args[2], "wait") {
		_, _ = s.Wait()
	}
	time.Sleep(2 * time.Minute) // not select {}: without cgo that is a deadlock to Go
}

// playExec becomes a command in a session: the store's directory is in the
// environment.
func playExec() {
	st, err := OpenStoreAt(os.Getenv("STORE"))
	if err != nil {
		panic(err)
	}
	s, err := Begin(Options{Store: st, Confined: true, Scoped: true})
	if err != nil {
		panic(err)
	}
	c := attackCommand("sleepers")
	panic(s.Exec(c))
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
	say("inner " + s.ID() + " " + string(s.Tracker().Kind))
	_, _ = s.Wait()
	_, _ = s.Close(context.Background())
	say("inner ended")
	time.Sleep(2 * time.Minute)
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
	if name == "sleepers" {
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); exec sleep 1000"}
	}
	if abi := probeDomain().Landlock; abi >= domainABI {
		steps, done, err := domainSteps(abi)
		if err != nil {
			panic(err)
		}
		c.Steps, c.Cleanup = steps, []func(){done}
	}
	return c
}

// warmUp makes Go keep some threads at hand: when the bomb has filled the table
// of processes, it gets no new ones.
func warmUp() {
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			time.Sleep(20 * time.Millisecond)
		})
	}
	wg.Wait()
}

// ownProc gives a PID namespace its own /proc.
func ownProc() {
	_ = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Println("skip: no /proc for the namespace:", err)
		os.Exit(77)
	}
}

// playHopControl is the init of a PID namespace. It shows that killing a
// hopper's process group, and all that a scan of /proc finds, leaves hoppers.
func playHopControl() {
	ownProc()
	for range 50 { // now and then a scan does meet all of them
		if hoppersEscape() {
			return
		}
	}
	os.Exit(1)
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
	t, _ := readTable()
	for pid := range t {
		if pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = r.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := r.Read(make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

// playBombHost is the init of a PID namespace with a limit on processes. It
// runs a bomb in a session, and ends well if nothing of it is left.
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
		time.Sleep(50 * time.Millisecond) // let it reach the limit
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		t0 := time.Now()
		rep, err := s.Close(ctx)
		fmt.Println("all ended after", time.Since(t0).Round(time.Millisecond))
		check(err)
		cancel()
		if !rep.Done() {
			check(fmt.Errorf("not done: %d survivors, %v, %s", len(rep.Survivors), rep.Methods, rep.Unproved))
		}
		_ = r.SetReadDeadline(time.Now().Add(2 * time.Second))
		if _, err := r.Read(make([]byte, 64)); !errors.Is(err, io.EOF) {
			check(fmt.Errorf("something still holds the pipe: %w", err))
		}
		r.Close()
		t, err := readTable()
		check(err)
		for pid, p := range t {
			if pid != os.Getpid() && !p.dead() && p.Name != keeperName { // the last keeper is on its way out
				check(fmt.Errorf("left: %+v", p))
			}
		}
	}
}
