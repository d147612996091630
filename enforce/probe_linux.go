package enforce

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/internal/files"
)

// How a machine is asked: each question is the system call itself, with arguments
// that change nothing, since version numbers and files of /sys say little about a
// container. A refusal becomes a reason in Caps; a shortage is no answer and becomes
// Caps.Err.

// Probe asks the kernel what it can enforce. It takes a few microseconds and
// changes nothing: that a promise really holds is proved by SelfTest, and by
// the start of a command, which fails when the kernel refuses a layer.
// Where this machine is too short of something to be asked, Caps.Err says so.
//
// That a mount namespace can be had is assumed where nothing speaks against
// it; see ProbeNamespaces.
func Probe() Caps {
	c := Caps{OS: "linux", Arch: runtime.GOARCH, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	a := &asker{}
	c.Landlock, c.LandlockReason = a.landlock()
	c.Seccomp, c.SeccompReason = a.action(unix.SECCOMP_RET_ERRNO)
	c.Capabilities = a.permitted()
	if c.Seccomp {
		c.SeccompNotify, c.SeccompNotifyReason = a.notify(a.yamaScope(), c.Capabilities)
		c.Answered = a.supervised && c.Landlock >= 4 && !connectHeld()
	}
	a.privileges(&c)
	c.Err = a.err
	return c
}

// privileges finds out by what means a mount namespace can be made.
func (a *asker) privileges(c *Caps) {
	c.Privileged = c.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0
	switch {
	case c.Privileged:
		c.MountNS = true
	case c.UID == 0:
		// A user namespace would give root's powers over nothing but its
		// own files, and take those over the files of others away.
		c.MountReason = "CAP_SYS_ADMIN is missing"
	default:
		c.MountReason, c.MountHint = a.refusesUserNS()
		c.MountNS = c.MountReason == ""
	}
}

// asker asks the kernel. What it was too short of something to answer is no
// answer: err is the first such error.
type asker struct {
	err        error
	supervised bool // by another program
}

func (a *asker) ask(name string, nr uintptr, args ...uintptr) (r uintptr, errno unix.Errno) {
	var all [3]uintptr
	copy(all[:], args)
	errno = fork.Retry(func() (errno unix.Errno) {
		r, _, errno = unix.RawSyscall(nr, all[0], all[1], all[2])
		return errno
	})
	a.note(name, errno)
	return r, errno
}

// note keeps an error if it is a shortage, the first one.
func (a *asker) note(doing string, err error) {
	if err != unix.Errno(0) && fork.ShortageOf(err) != nil && a.err == nil {
		a.err = fmt.Errorf("finding out what this machine can enforce: %s: %w", doing, err)
	}
}

// refusal says what the error of a system call means that a kernel may lack.
func refusal(errno unix.Errno) string {
	switch errno {
	case 0:
		return ""
	case unix.ENOSYS, unix.EINVAL:
		return "it is not built into this kernel, or hidden by a seccomp filter"
	case unix.EOPNOTSUPP:
		return "it is built into this kernel, but not in the lsm= list that it was booted with"
	case unix.EPERM, unix.EACCES:
		return "a seccomp filter of the container refuses it"
	}
	return errno.Error()
}

// landlock asks for the version of Landlock. The answer is the kernel's
// own; /sys/kernel/security/lsm is missing in many containers.
func (a *asker) landlock() (version int, reason string) {
	v, errno := a.ask("landlock_create_ruleset(2)", unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		v = 0
	}
	return int(v), refusal(errno)
}

// action asks whether a filter may give an answer.
func (a *asker) action(action uint32) (bool, string) {
	_, errno := a.ask("seccomp(2)", unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0, refusal(errno)
}

// permitted is the calling thread's permitted capability set. Without an answer
// the command would keep all that there are.
func (a *asker) permitted() uint64 {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		a.err = cmp.Or(a.err, fmt.Errorf("finding out what this machine can enforce: capget(2): %w", err))
		return 0
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
}

// notify asks whether this process can be the supervisor of a filter: be
// handed system calls, and fetch the sockets of the processes that made them.
func (a *asker) notify(yama byte, capabilities uint64) (bool, string) {
	if ok, why := a.action(unix.SECCOMP_RET_USER_NOTIF); !ok {
		return false, why
	}
	// No descriptor -1 can be fetched: EBADF, unless the call is not there.
	if _, errno := a.ask("pidfd_getfd(2)", unix.SYS_PIDFD_GETFD, ^uintptr(0), 0, 0); errno == unix.EPERM || errno == unix.EACCES {
		return false, "a seccomp filter of the container refuses pidfd_getfd(2), as Docker's does without --cap-add SYS_PTRACE"
	} else if errno != unix.EBADF {
		return false, "pidfd_getfd(2) (Linux 5.6): " + refusal(errno)
	}
	if why := seccomp.YamaRefuses(yama, capabilities); why != "" {
		return false, why
	}
	// There can be one supervisor in a line of filters. Without any filter
	// on this process there is none.
	mode, errno := a.ask("prctl(PR_GET_SECCOMP)", unix.SYS_PRCTL, unix.PR_GET_SECCOMP)
	if errno == 0 && mode == 0 {
		return true, ""
	}
	errno = fork.Retry(installListener)
	a.note("seccomp(2)", errno)
	if errno == unix.EBUSY {
		a.supervised = true
		return false, "this process has a supervisor already, and there can be one only: an outer zsbx, which still guards its own session, or a container's"
	}
	return errno == 0, refusal(errno)
}

// connectHeld tries whether Landlock refuses a connect(2) that is made without it, on a
// thread that ends afterwards: a supervisor that makes the call is in no domain of it.
func connectHeld() bool {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false // it can't be told: an outer zsbx with no network still connects to Unix sockets
	}
	defer unix.Close(s)
	connect := func() error { return unix.Connect(s, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}) }
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // and no unlocking: the thread is not used again
		without := connect()
		fd, err := (&landlock.Ruleset{HandledNet: landlock.NetConnectTCP}).Create()
		if err == nil {
			unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
			unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0)
			unix.Close(fd)
		}
		done <- without != unix.EACCES && connect() == unix.EACCES
	}()
	return <-done
}

// yamaScope is kernel.yama.ptrace_scope, as a digit; 0 without Yama.
func (a *asker) yamaScope() byte {
	if text := a.read("/proc/sys/kernel/yama/ptrace_scope"); text != "" {
		return text[0]
	}
	return '0'
}

// installListener tries it, with a filter that allows everything, on a thread
// that ends afterwards.
func installListener() unix.Errno {
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // and no unlocking: the thread is not used again
		done <- seccomp.TryListener()
	}()
	return <-done
}

// refusesUserNS says why an ordinary user gets no user namespace with a say over
// mounts, as far as that is certain without making one, and what the machine's
// owner would type to change it. It costs some microseconds, and saves each
// start on such a machine a process that is refused (AppArmor also writes a line
// to the system's log for each).
func (a *asker) refusesUserNS() (why, hint string) {
	// The kernel refuses the second flag, whoever asks: EINVAL. Another
	// answer is that of Debian's kernels, where only root may have user
	// namespaces, or of a seccomp filter, zsbx's own around this zsbx among
	// them.
	const invalid = 1
	_, errno := a.ask("unshare(2)", unix.SYS_UNSHARE, unix.CLONE_NEWUSER|invalid)
	return userNSRefusal(errno, a.read)
}

// userNSRefusal is what the answer to an unshare(2) that is wrong in any case
// means, on a machine whose procfs is read by read.
func userNSRefusal(errno unix.Errno, read func(file string) string) (why, hint string) {
	switch {
	case errno == unix.EPERM && read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "only root may make user namespaces (sysctl kernel.unprivileged_userns_clone)", "sudo sysctl kernel.unprivileged_userns_clone=1"
	case errno != unix.EINVAL && errno != 0:
		return "the seccomp filter that zsbx itself runs under refuses user namespaces: " + errno.Error(), ""
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are switched off (sysctl user.max_user_namespaces)", "sudo sysctl user.max_user_namespaces=10000"
	case apparmorRestricts(read) && read("/proc/self/attr/current") == "unconfined":
		return "AppArmor restricts user namespaces to programs with a profile (sysctl kernel.apparmor_restrict_unprivileged_userns)", apparmorHint
	}
	return "", ""
}

const apparmorHint = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"

// apparmorRestricts reports whether programs without a profile that allows it
// get user namespaces without capabilities, or none.
func apparmorRestricts(read func(file string) string) bool {
	return read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1"
}

// lateHint is what to type when it was the start that was refused.
func lateHint(errno unix.Errno) string {
	if (errno == unix.EPERM || errno == unix.EACCES) && apparmorRestricts(readSmall) {
		return apparmorHint
	}
	return ""
}

// readSmall is the first line of a small file of procfs, "" when it can't be read.
func readSmall(file string) string { return (&asker{}).read(file) }

// read is readSmall, which notes a shortage.
func (a *asker) read(file string) string {
	text, err := files.ReadInto(file, make([]byte, 64))
	a.note(file, err)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// ProbeNamespaces finds out by doing whether a private mount namespace can be
// had, and sets MountNS and MountReason accordingly: it makes one in a process that then
// executes what can't be executed. That takes about as long as starting a command.
func ProbeNamespaces(caps *Caps) {
	if !caps.MountNS || caps.Err != nil {
		return
	}
	p := &Plan{Caps: *caps, Mounts: &mounts.Plan{UserNS: !caps.Privileged, IPC: caps.IPCReason == "", Writable: []string{}}}
	c := &fork.Command{Path: "/", Args: []string{"/"}, Dir: "/"}
	c.Steps = p.Mounts.Steps(nil, c.Memory(), os.Geteuid(), os.Getegid(), -1, nil)
	_, err := fork.Start(c)
	if se, ok := errors.AsType[*fork.StepError](err); ok && se.Stage == fork.StageExec {
		return
	}
	without, refused := p.Refused(err)
	switch {
	case refused:
		*caps = without
		ProbeNamespaces(caps)
	case fork.ShortageOf(err) != nil:
		caps.Err = fmt.Errorf("trying a mount namespace: %w", err)
	default:
		caps.MountNS, caps.MountReason = false, "a process to try it in could not be started"
	}
}
