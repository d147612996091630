package track

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/cgroup"
)

// domainABI is the first Landlock ABI with LANDLOCK_SCOPE_SIGNAL (Linux 6.12).
//
// Erratum 2 of that ABI (signals between threads of one process in different domains) does not
// matter here. The keeper has one thread, and the command is in its domain before it can make
// another.
const domainABI = 6

// probe finds out by trying whether the tracker that o asks for is available. For Domain, the
// usual one, that is one system call.
func probe(o Options) caps {
	c := caps{os: runtime.GOOS, noGroup: "not looked for"}
	if o.Exec {
		return c
	}
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno != 0: // ENOSYS: not built in; EOPNOTSUPP: switched off
		c.noDomain = "no Landlock: " + errno.Error()
	case v < domainABI:
		const format = "Landlock ABI %d (Linux 6.12) is needed for signal scopes, this kernel has %d"
		c.noDomain = fmt.Sprintf(format, domainABI, v)
	}
	c.landlock = int(v)
	if o.Tracker == Cgroup || o.Tracker == Auto && (c.noDomain != "" || !o.Scoped) {
		c.probeGroup()
	}
	return c
}

// probeGroup finds out where a session's control group can be made.
func (c *caps) probeGroup() {
	dir, err := findGroup(Limits{})
	c.group = dir
	if err == nil {
		c.noGroup = ""
		return
	}
	c.noGroup = err.Error()
	if short(err) {
		c.err = fmt.Errorf("finding out how to track the command: %w", err)
	}
}

// short reports whether an error is a shortage. EAGAIN is none: mkdir(2) in cgroupfs returns it
// at the limit cgroup.max.descendants or cgroup.max.depth, and connect(2) does for a bus that
// accepts no more connections.
func short(err error) bool { return !errors.Is(err, unix.EAGAIN) && fork.ShortageOf(err) != nil }

// findGroup returns where to make a group with limits: the nearest directory where that works,
// or scope.
func findGroup(l Limits) (string, error) {
	dir, err := cgroup.Parent(l)
	if err == nil || errors.Is(err, cgroup.ErrNone) || short(err) {
		return dir, err
	}
	if bus := cgroup.ProbeScope(); bus != nil {
		return "", fmt.Errorf("%w; %w", err, bus)
	}
	return scope, nil
}

// domainSteps returns the system calls by which a keeper puts itself into a Landlock domain
// that scopes only signals. The domain also handles LANDLOCK_ACCESS_FS_REFER and grants it
// everywhere: otherwise this layer would forbid all renames between directories. The returned
// function closes what the steps use.
func domainSteps(abi int) ([]fork.Step, func(), error) {
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER,
		Scoped:            unix.LANDLOCK_SCOPE_SIGNAL,
	}
	size := unsafe.Sizeof(attr)
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, nil, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	done := func() { unix.Close(int(r)) }
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		done()
		return nil, nil, err
	}
	defer unix.Close(root)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: unix.LANDLOCK_ACCESS_FS_REFER, Parent_fd: int32(root)}
	_, _, errno = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		done()
		return nil, nil, fmt.Errorf("landlock_add_rule: %w", errno)
	}
	// With auditing, each process that kill(-1) may not signal would be a line in the kernel's
	// log.
	flags := uintptr(0)
	if abi >= 7 {
		flags = unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF
	}
	return []fork.Step{
		{Name: "prctl(PR_SET_NO_NEW_PRIVS)", Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1}},
		{Name: "landlock_restrict_self(2)", Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Args: [6]uintptr{r, flags}},
	}, done, nil
}
