package track

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// Landlock's numbers that x/sys does not have or spells as untyped constants
// of other types; see landlock(7) and linux/landlock.h.
const (
	landlockVersion    = 1 << 0  // landlock_create_ruleset: LANDLOCK_CREATE_RULESET_VERSION
	landlockRefer      = 1 << 13 // LANDLOCK_ACCESS_FS_REFER
	landlockScopeSig   = 1 << 1  // LANDLOCK_SCOPE_SIGNAL
	landlockLogSameOff = 1 << 0  // LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF, ABI 7
	landlockLogABI     = 7
)

// probeDomain finds out what the tracker Domain needs. It is cheap: one system
// call.
func probeDomain() Caps {
	c := Caps{OS: "linux", Keeper: true} // PR_SET_CHILD_SUBREAPER is there since Linux 3.4
	errno := fork.Retry(func() (errno unix.Errno) {
		v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, landlockVersion)
		c.Landlock = int(v)
		return errno
	})
	if errno == 0 {
		return c
	}
	c.Landlock = 0
	c.note(errno)
	switch errno {
	case unix.ENOSYS:
		c.LandlockWhy = "this kernel was built without it"
	case unix.EOPNOTSUPP:
		c.LandlockWhy = "it is switched off (not in the kernel's lsm= list)"
	default:
		c.LandlockWhy = "the system call is refused: " + errno.Error()
	}
	return c
}

// probes counts the groups that were made to find out: two sessions may begin at
// once.
var probes atomic.Int64

// probe finds out everything, by doing.
func probe() Caps {
	c := probeDomain()
	if c.Err != nil {
		return c
	}
	name := fmt.Sprintf("zsbx-probe-%d-%d", unix.Getpid(), probes.Add(1))
	dir, err := findCgroupParent(name)
	if err != nil {
		c.CgroupWhy = err.Error()
		c.note(err)
	}
	c.Cgroup = dir
	if err := pingUserManager(); err != nil {
		c.UserManagerWhy = err.Error()
		c.note(err)
	} else {
		c.UserManager = true
	}
	return c
}

// note keeps an error that is a shortage, the first one. EAGAIN is none: mkdir(2)
// in cgroupfs says it where cgroup.max.descendants or cgroup.max.depth is set, and
// connect(2) to a bus that takes no more connections.
func (c *Caps) note(err error) {
	if c.Err == nil && !errors.Is(err, unix.EAGAIN) && fork.ShortageOf(err) != nil {
		c.Err = fmt.Errorf("finding out how to track the command: %w", err)
	}
}

// domainSteps are the system calls by which a keeper puts itself into a
// Landlock domain of its own: one that scopes signals and nothing else. It has
// to handle LANDLOCK_ACCESS_FS_REFER too and to grant it everywhere, because a
// layer that does not would forbid all renames between directories below it.
// The returned function closes what the steps use.
func domainSteps(abi int) ([]fork.Step, func(), error) {
	attr := struct{ fs, net, scoped uint64 }{fs: landlockRefer, scoped: landlockScopeSig}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, nil, errors.Join(errors.New("landlock_create_ruleset"), errno)
	}
	fd := int(r)
	done := func() { unix.Close(fd) }
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		done()
		return nil, nil, err
	}
	defer unix.Close(root)
	// struct landlock_path_beneath_attr is packed: 12 bytes.
	var rule [12]byte
	*(*uint64)(unsafe.Pointer(&rule[0])) = landlockRefer
	*(*int32)(unsafe.Pointer(&rule[8])) = int32(root)
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r, 1, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		done()
		return nil, nil, errors.Join(errors.New("landlock_add_rule"), errno)
	}
	// Where the kernel audits, each process that kill(-1) leaves alone would
	// be a line in its log.
	flags := uintptr(0)
	if abi >= landlockLogABI {
		flags = landlockLogSameOff
	}
	return []fork.Step{
		{Name: "prctl(PR_SET_NO_NEW_PRIVS)", Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1}},
		{Name: "landlock_restrict_self(2)", Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Args: [6]uintptr{r, flags}},
	}, done, nil
}
