package landlock

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// ErrChanged says that a path has changed since the policy was resolved. A new start resolves
// it again.
var ErrChanged = errors.New("changed while the command was being started")

// Tag marks the step that enforces a ruleset.
const Tag fork.Tag = "Landlock"

// Create makes an empty ruleset before the fork. AddRules fills it while the child is being
// made. The child then restricts itself with the same descriptor. Each path is opened again and
// compared with what was resolved. If it was replaced meanwhile, the start fails.

// rulesetAttr is struct landlock_ruleset_attr. An older kernel, which knows fewer fields,
// accepts zeros in the others.
type rulesetAttr struct {
	fs, net, scoped uint64
	quiet           [3]uint64
}

// PathBeneath is struct landlock_path_beneath_attr. That is packed, and the kernel reads only
// the low half of Fd.
type PathBeneath struct {
	Rights uint64
	Fd     uintptr
}

const RulePathBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH

// Create makes the kernel's ruleset without rules. It returns its close-on-exec descriptor.
func (rs *Ruleset) Create() (int, error) {
	attr := rulesetAttr{fs: rs.HandledFS, net: rs.HandledNet, scoped: rs.Scoped}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock_create_ruleset(2) for ABI %d: %w", rs.ABI, errno)
	}
	return int(r), nil
}

// AddRules fills the ruleset. Processes that were already forked share it.
func (rs *Ruleset) AddRules(fd int) error {
	for i := range rs.Paths {
		if err := addPath(fd, &rs.Paths[i]); err != nil {
			return err
		}
	}
	for _, r := range rs.Ports {
		attr := struct{ rights, port uint64 }{r.Rights, uint64(r.Port)}
		if err := AddRule(fd, 2, unsafe.Pointer(&attr)); err != nil { // LANDLOCK_RULE_NET_PORT
			return fmt.Errorf("landlock rule for port %d (%s): %w", r.Port, r.Origin, err)
		}
	}
	return nil
}

func AddRule(fd int, kind uintptr, attr unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(fd), kind, uintptr(attr), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// addPath opens a path, checks that it is still what was resolved, and adds the rule with that
// descriptor. A replacement is noticed here, or comes too late to matter.
func addPath(ruleset int, r *PathRule) error {
	var st unix.Stat_t
	fd, err := openNoLinks(r.Path)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Fstat(fd, &st)
	}
	if err == unix.ENOENT && r.Part {
		return nil
	}
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP:
		return fmt.Errorf("%s (%s) %w: %v", r.Path, r.Origin, ErrChanged, err)
	case err != nil:
		return fmt.Errorf("opening %s (%s): %w", r.Path, r.Origin, err)
	case st.Dev != r.ID.Dev || st.Ino != r.ID.Ino && !onProc(fd):
		return fmt.Errorf("%s (%s) %w", r.Path, r.Origin, ErrChanged)
	}
	if r.Overlay {
		return nil
	}
	attr := PathBeneath{r.Rights, uintptr(fd)}
	if err := AddRule(ruleset, RulePathBeneath, unsafe.Pointer(&attr)); err != nil {
		return fmt.Errorf("landlock rule for %s (%s): %w", r.Path, r.Origin, err)
	}
	return nil
}

// openNoLinks opens a path with O_PATH without following any link in it. Where openat2(2) is
// refused, for example by an outer zsbx's filter, it notices only a link in the last element.
// The comparison of inodes finds the others.
func openNoLinks(path string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fork.Retry(func() unix.Errno {
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &how)
		errno, _ := err.(unix.Errno)
		return errno
	})
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

// onProc reports whether a file is on procfs. Some files there get a new inode number whenever
// the kernel has dropped the old one.
func onProc(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
