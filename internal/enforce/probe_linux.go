package enforce

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/shell"
)

// This file asks the machine what it can do. Each question is the system call itself, with
// arguments that change nothing, since version numbers and files of /sys say little about a
// container. A refusal becomes a reason in Caps. A shortage or an unexpected error is no answer and
// becomes Caps.Err.

// Probe asks the kernel what it can enforce. It takes a few microseconds and changes nothing.
// Package selftest proves that promises are kept, and the start of a command fails if the
// kernel refuses a layer. If the kernel gives no answer, since this machine is short of resources or
// for an unexpected error, Caps.Err says so.
//
// Probe assumes that there can be a mount namespace unless there is a sign against it; see
// ProbeNamespaces.
func Probe() Caps {
	c := Caps{OS: "linux", Arch: runtime.GOARCH, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	a := &asker{}
	c.Landlock, c.LandlockReason = a.landlock()
	c.Seccomp, c.SeccompReason = a.action(unix.SECCOMP_RET_ERRNO)
	c.Capabilities = a.permitted()
	if c.Seccomp {
		c.SeccompNotify, c.SeccompNotifyReason = a.notify(a.yamaScope(), c.Capabilities)
		c.Answered = a.supervised && c.Landlock >= 4 && !landlockChecksConnect()
	}
	a.privileges(&c)
	if c.MountNS && a.read("/proc/sys/user/max_net_namespaces") == "0" {
		c.NetReason = "network namespaces are switched off (sysctl user.max_net_namespaces)"
	}
	c.Err = a.err
	return c
}

// privileges finds out how a mount namespace can be made.
func (a *asker) privileges(c *Caps) {
	c.Privileged = c.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0
	switch {
	case c.Privileged:
		c.MountNS = true
	case c.UID == 0:
		// In a user namespace root would lose its power over the files of others.
		c.MountReason = "CAP_SYS_ADMIN is missing"
	default:
		c.MountReason, c.MountHint, c.UserNSBy = a.refusesUserNS()
		c.MountNS = c.MountReason == ""
	}
}

// asker asks the kernel. err is the first error that is no answer.
type asker struct {
	err        error
	supervised bool // a filter of another program has a listener
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

// answers are the errors with which a kernel or a filter refuses something, and those that the
// questions provoke. After any other error it is unknown what can be done.
var answers = []unix.Errno{
	0, unix.ENOSYS, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM, unix.EACCES,
	unix.EBADF, // for descriptor -1
	unix.EBUSY, // for a second listener
}

// note keeps a system call's error if it is no answer.
func (a *asker) note(call string, errno unix.Errno) {
	if !slices.Contains(answers, errno) {
		a.fail(call, errno)
	}
}

// fail keeps the first error.
func (a *asker) fail(doing string, err error) {
	a.err = cmp.Or(a.err, fmt.Errorf("finding out what this machine can enforce: %s: %w", doing, err))
}

// refusal explains the error of a system call that a kernel may lack.
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

// landlock asks the kernel for its version of Landlock. It does not read
// /sys/kernel/security/lsm, which is missing in many containers.
func (a *asker) landlock() (version int, reason string) {
	v, errno := a.ask("landlock_create_ruleset(2)", unix.SYS_LANDLOCK_CREATE_RULESET,
		0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		v = 0
	}
	return int(v), refusal(errno)
}

// action asks whether a filter may give an answer.
func (a *asker) action(action uint32) (bool, string) {
	_, errno := a.ask("seccomp(2)", unix.SYS_SECCOMP,
		unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0, refusal(errno)
}

// permitted returns the calling thread's permitted capability set. A failure is an error, since
// the command would otherwise keep all capabilities.
func (a *asker) permitted() uint64 {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		a.fail("capget(2)", err)
		return 0
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
}

// notify asks whether this process can be a broker: get calls from a filter, and fetch the
// sockets of the processes that made them.
func (a *asker) notify(yama byte, capabilities uint64) (bool, string) {
	if ok, why := a.action(unix.SECCOMP_RET_USER_NOTIF); !ok {
		return false, why
	}
	// Descriptor -1 can't be fetched: the error is EBADF, unless the call is missing.
	_, errno := a.ask("pidfd_getfd(2)", unix.SYS_PIDFD_GETFD, ^uintptr(0), 0, 0)
	switch errno {
	case unix.EBADF:
	case unix.EPERM, unix.EACCES:
		return false, "a seccomp filter of the container refuses pidfd_getfd(2), " +
			"as Docker's does without --cap-add SYS_PTRACE"
	default:
		return false, "pidfd_getfd(2) (Linux 5.6): " + refusal(errno)
	}
	if why := seccomp.YamaRefuses(yama, capabilities); why != "" {
		return false, why
	}
	// Only one filter in a stack can have a listener. Without any filter on this process there
	// is none.
	mode, errno := a.ask("prctl(PR_GET_SECCOMP)", unix.SYS_PRCTL, unix.PR_GET_SECCOMP)
	if errno == 0 && mode == 0 {
		return true, ""
	}
	errno = fork.Retry(installListener)
	a.note("seccomp(2)", errno)
	if errno == unix.EBUSY {
		a.supervised = true
		return false, "this process already has a supervisor, and there can be only one: " +
			"an outer zsbx, which still guards its own session, or a container's"
	}
	return errno == 0, refusal(errno)
}

// landlockChecksConnect reports whether a Landlock domain stops a connect(2) that succeeds outside
// the domain. It tries that on a thread that ends afterwards. A domain does not apply to an outer
// supervisor that makes the call for this process.
func landlockChecksConnect() bool {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false // unknown: an outer zsbx without a network still connects to Unix sockets
	}
	defer unix.Close(s)
	connect := func() error { return unix.Connect(s, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}) }
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this function
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

// yamaScope returns kernel.yama.ptrace_scope as a digit, or '0' without Yama.
func (a *asker) yamaScope() byte {
	if text := a.read("/proc/sys/kernel/yama/ptrace_scope"); text != "" {
		return text[0]
	}
	return '0'
}

// installListener calls seccomp.TryListener on a thread that ends afterwards.
func installListener() unix.Errno {
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with this function
		done <- seccomp.TryListener()
	}()
	return <-done
}

// refusesUserNS returns why an ordinary user gets no user namespace in which mounts are
// allowed, if that is certain without making one, and what the machine's owner can type to
// change it; or else what allows it (see apparmor). It takes some microseconds. On such a machine
// it saves each start a process that would be refused, for which AppArmor would also log a line.
func (a *asker) refusesUserNS() (why, hint, by string) {
	// The kernel always refuses the second flag with EINVAL. Another error comes from Debian's
	// kernels, where only root may have user namespaces, or from a seccomp filter, such as an
	// outer zsbx's.
	const invalid = 1
	_, errno := a.ask("unshare(2)", unix.SYS_UNSHARE, unix.CLONE_NEWUSER|invalid)
	return userNSRefusal(errno, a.read)
}

// userNSRefusal explains the error of an unshare(2) with an invalid flag. read reads files of
// procfs.
func userNSRefusal(errno unix.Errno, read func(file string) string) (why, hint, by string) {
	switch {
	case errno == unix.EPERM && read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		why = "only root may make user namespaces (sysctl kernel.unprivileged_userns_clone)"
		hint = "sudo sysctl kernel.unprivileged_userns_clone=1"
	case errno != unix.EINVAL && errno != 0:
		why = "the seccomp filter that zsbx itself runs under refuses user namespaces: " + errno.Error()
	case read("/proc/sys/user/max_user_namespaces") == "0":
		why = "user namespaces are switched off (sysctl user.max_user_namespaces)"
		hint = "sudo sysctl user.max_user_namespaces=10000"
	default:
		return apparmor(read)
	}
	return why, hint, ""
}

// apparmor returns why AppArmor lets this program make no user namespaces, or else what lets it make them
// where AppArmor can restrict them.
func apparmor(read func(file string) string) (why, hint, by string) {
	switch read(apparmorSysctl) {
	case "0":
		return "", "", "AppArmor restricts no program: sysctl kernel.apparmor_restrict_unprivileged_userns is 0"
	case "1":
	default:
		return "", "", ""
	}
	switch label := read(apparmorLabel); label {
	case "":
		return "", "", ""
	case unconfined:
		return "AppArmor restricts user namespaces to programs with a profile", apparmorHint(ownFile()), ""
	default:
		return "", "", "AppArmor allows it by the profile " + label
	}
}

const (
	apparmorSysctl = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	apparmorLabel  = "/proc/self/attr/current"
	unconfined     = "unconfined" // the label of a program without a profile
)

// apparmorHint is a profile that lets a program, and no other, make user namespaces. It needs AppArmor 4.0, as
// machines that restrict them have. The other way is for every program, so it comes last.
// The profile of the packages is zsbx, for /usr/bin/zsbx: this one is beside it.
func apparmorHint(program string) string {
	profile := `abi <abi/4.0>,\nprofile zsbx-local "%s" flags=(unconfined) { userns, }\n`
	load := "printf '" + profile + "' " + shell.Quote(program) + " | sudo tee /etc/apparmor.d/zsbx-local && " +
		"sudo apparmor_parser -r /etc/apparmor.d/zsbx-local"
	return load + " # or, for every program: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
}

// ownFile is the file of this program.
func ownFile() string {
	name, err := os.Executable()
	if err != nil {
		return "/usr/bin/zsbx"
	}
	return name
}

// lateHint returns what to type after a start was refused. A profile for zsbx would not help where zsbx runs under
// another one.
func lateHint(errno unix.Errno, read func(file string) string) string {
	refused := errno == unix.EPERM || errno == unix.EACCES
	if refused && read(apparmorSysctl) == "1" && profileOf(read(apparmorConfined)) == "" {
		return apparmorHint(ownFile())
	}
	return ""
}

// readSmall returns the first line of a small file of procfs, or "" if reading fails.
func readSmall(file string) string { return (&asker{}).read(file) }

// read is readSmall that also keeps an error that leaves unknown what the file says. Most kernels
// lack some of these files.
func (a *asker) read(file string) string {
	text, err := files.ReadInto(file, make([]byte, 64))
	if errors.Is(err, unix.EIO) || fork.ShortageOf(err) != nil {
		a.fail(file, err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// ProbeNamespaces finds out by trying whether there can be a private mount namespace, and in it
// a network namespace. It sets MountNS and MountReason, and NetReason. It makes them in a process
// that then executes a directory, which fails. That takes about as long as starting a command.
func ProbeNamespaces(caps *Caps) {
	if !caps.MountNS || caps.Err != nil {
		return
	}
	namespace := &mounts.Plan{UserNS: !caps.Privileged, IPC: caps.IPCReason == "", Writable: []string{}}
	p := &Plan{Caps: *caps, Mounts: namespace}
	c := &fork.Command{Path: "/", Args: []string{"/"}, Dir: "/"}
	c.Steps = p.Mounts.Steps(nil, c.Memory(), mounts.StepOptions{UID: os.Geteuid(), GID: os.Getegid(), Ruleset: -1})
	if caps.NoOwnNet() == "" {
		c.Steps = append(c.Steps, netSteps(c.Memory())...)
	}
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
		caps.Err = fmt.Errorf("trying namespaces: %w", err)
	default:
		caps.MountNS = false
		caps.MountReason = "a process to try it in could not be started"
	}
}

// TryLayers makes the overlays of a plan in a process that then executes a directory, which fails. It returns what
// this machine can do: if the kernel refuses an overlay, without layers. UseLayer must have been called.
func (p *Plan) TryLayers() Caps {
	trial := &mounts.Plan{UserNS: p.Mounts.UserNS, Overlays: p.Mounts.Overlays}
	for _, o := range trial.Overlays {
		trial.Writable = append(trial.Writable, o.Path)
	}
	c := &fork.Command{Path: "/", Args: []string{"/"}, Dir: "/"}
	c.Before = trial.Steps(nil, c.Memory(), mounts.StepOptions{UID: os.Geteuid(), GID: os.Getegid(), Ruleset: -1})
	_, err := fork.Start(c)
	if se, ok := errors.AsType[*fork.StepError](err); ok && se.Stage == fork.StageExec {
		return p.Caps
	}
	caps, refused := p.Refused(err)
	if !refused {
		caps.Err = fmt.Errorf("trying a layer: %w", err)
	}
	return caps
}

// netSteps are what a keeper does for the first socket of the session's network: see
// fork.SocketRequest. They also ask for the number by which the broker knows that network.
func netSteps(m *fork.Memory) []fork.Step {
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{name: [16]byte{'l', 'o'}, flags: unix.IFF_UP}
	up := uintptr(unsafe.Pointer(fork.Put(m, request)))
	size := fork.Put(m, uint32(8))
	number := fork.Put(m, uint64(0))
	tell := [6]uintptr{
		0, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE, uintptr(unsafe.Pointer(number)), uintptr(unsafe.Pointer(size)),
	}
	steps := []fork.Step{
		{Name: "unshare(2)", Nr: unix.SYS_UNSHARE, Args: [6]uintptr{unix.CLONE_NEWNET}},
		{Name: "socket(2)", Nr: unix.SYS_SOCKET, Args: [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}},
		{Name: "ioctl(2) of its device lo", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.SIOCSIFFLAGS, up},
			Back: [6]uint32{1}},
		{Name: "getsockopt(2) SO_NETNS_COOKIE (Linux 5.14)", Nr: unix.SYS_GETSOCKOPT, Args: tell, Back: [6]uint32{2}},
	}
	for i := range steps {
		steps[i].Tag = tagNet
	}
	return steps
}
