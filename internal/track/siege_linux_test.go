package track

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/internal/testkit"
)

// playFakeKeeper leaves a daemon that looks exactly like a keeper.
func playFakeKeeper() {
	rawChild(rawFakeKeeper)
	say("ready")
	time.Sleep(2 * testkit.Patience)
}

//go:nosplit
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

// playSiege signals and traces the keeper in every way, and prints which ways the kernel
// allowed.
func playSiege() {
	raw(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0, 0) // else it dies with the keeper that it kills
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
		"/proc/k/mem": func() int {
			fd, err := unix.Open(procfs.Path(keeper, "mem"), unix.O_RDWR, 0)
			return openAnswer(fd, err)
		},
		"/proc/k/fd/1": func() int {
			fd, err := unix.Open(procfs.Path(keeper, "fd/1"), unix.O_RDWR, 0)
			return openAnswer(fd, err)
		},
	}
	for name, try := range ways {
		if r := try(); r >= 0 {
			say("allowed: " + name)
		}
	}
	// SIGIO through a pipe whose owner is set to the keeper: the kernel drops it silently, and
	// the keeper must live.
	var p [2]int
	_ = unix.Pipe(p[:])
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, keeper)
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, int(unix.SIGKILL))
	_, _ = unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC)
	_, _ = unix.Write(p[1], []byte("x"))
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

// playMover moves itself to the given group, and makes another below it, with a frozen process.
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
