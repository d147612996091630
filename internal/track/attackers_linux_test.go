package track

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/internal/testkit"
)

// helpers returns the programs that the test binary plays inside a session. Each prints "ready"
// when its processes are in place. All of these keep standard output open, so that the test can
// see from outside whether one is alive. Code after a raw fork only makes system calls.
func helpers() map[string]func(args []string) {
	h := map[string]func([]string){
		"supervisor":   playSupervisor,
		"scopehost":    playScopeHost,
		"slowstart":    playSlowStart,
		"nested":       playNested,
		"inithost":     playInitHost,
		"initreaper":   playInitReaper,
		"hiddenhost":   playHidden,
		"hiddenkeeper": playHiddenKeeper,
		"hopcontrol":   func([]string) { playHopControl() },
		"siege":        func([]string) { playSiege() },
		"mover":        playMover,
		"bombhost":     playBombHost,
		"fullhost":     playFullHost,
		"hello":        func([]string) { say("hello") },
		"execsession":  func([]string) { playExec() },
		"secret": func([]string) {
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
			say("ready")
			time.Sleep(2 * testkit.Patience)
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
		"setsid":      func() { rawChild(rawSetsid) },
		"doublefork":  func() { attackDaemon(2) },
		"triplefork":  func() { attackDaemon(3) },
		"many":        func() { attackMany() },
		"hopper":      func() { rawChild(rawHop) },
		"hoppers":     func() { attackHoppers() },
		"nodump":      func() { raw(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0); attackDaemon(2) },
		"subreaper":   func() { rawChild(rawSubreaper) },
		"pdeathsig":   func() { raw(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0, 0); attackDaemon(1) },
		"cloneparent": func() { attackCloneParent() },
		"stopped":     func() { rawChild(rawStopOnce) },
		"stoppedself": func() { rawChild(rawStopSelf) },
		"ignoring":    func() { rawChild(rawIgnoring) },
		"ptraced":     func() { rawChild(rawTraced) },
		"vfork":       func() { rawChild(rawVforkBlocked) },
		"zombie":      func() { attackZombieLeader() },
		"namespaces":  func() { attackNamespaces() },
		"renamed":     func() { attackRenamed() },
		"shells":      func() { attackShells() },
		"otheruid":    func() { rawChild(rawOtherUID) },
	}
}

// rawSetsid has its own terminal session.
//
//go:nosplit
//go:norace
func rawSetsid() {
	raw(unix.SYS_SETSID, 0, 0, 0)
	rawPause()
}

// rawSubreaper becomes the parent of what its descendants leave.
//
//go:nosplit
//go:norace
func rawSubreaper() {
	raw(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0)
	rawDaemon(2)
	rawPause()
}

// rawStopOnce stops itself, and ends when it is continued.
//
//go:nosplit
//go:norace
func rawStopOnce() {
	raw(unix.SYS_KILL, uintptr(raw(unix.SYS_GETPID, 0, 0, 0)), uintptr(unix.SIGSTOP), 0)
}

func attackDaemon(depth int) {
	runtime.LockOSThread()
	rawDaemon(depth)
}

// rawDaemon forks depth times. Each parent except the first exits, and each child has its own
// terminal session.
//
//go:nosplit
//go:norace
func rawDaemon(depth int) {
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

// rawHop forks and exits over and over, so that its pid changes all the time. It ends by itself
// after some seconds, since nothing else could end it if a test fails.
//
//go:nosplit
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
		attackDaemon(2)
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

//go:nosplit
//go:norace
func rawStopSelf() {
	for {
		raw(unix.SYS_KILL, uintptr(raw(unix.SYS_GETPID, 0, 0, 0)), uintptr(unix.SIGSTOP), 0)
	}
}

// rawIgnoring blocks all signals.
//
//go:nosplit
//go:norace
func rawIgnoring() {
	mask := ^uint64(0)
	raw6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8)
	rawPause()
}

// rawTraced is a tracer with a traced child that is stopped.
//
//go:nosplit
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
//go:nosplit
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
	if unix.Gettid() != unix.Getpid() {
		panic("not the first thread")
	}
	go func() {
		testkit.Within(testkit.Patience, func() bool {
			s, err := procfs.LookAt("/proc/self")
			return err == nil && s.State == "Z"
		})
		_, _ = os.Stderr.WriteString("x")
		select {}
	}()
	go func() { // else the runtime would report a deadlock
		for {
			time.Sleep(time.Hour)
		}
	}()
	raw(unix.SYS_EXIT, 0, 0, 0)
}

// attackNamespaces leaves the init of a PID namespace with a child, in its own user namespace,
// or plain daemons if there can be no namespaces.
func attackNamespaces() {
	c := exec.Command("sleep", "1000")
	c.Stdout = os.Stdout
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID, Setsid: true}
	if err := c.Start(); err != nil {
		attackDaemon(3)
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

// rawOtherUID becomes another user, if that is allowed.
//
//go:nosplit
//go:norace
func rawOtherUID() {
	raw(unix.SYS_SETRESUID, 65534, 65534, 65534)
	rawPause()
}

func attackShells() {
	c := exec.Command("sh", "-c", `sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); nohup sleep 1000 & exit 0`)
	c.Stdout = os.Stdout
	_ = c.Run()
}
