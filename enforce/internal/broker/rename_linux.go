package broker

import (
	"path"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// A mount point can be neither renamed nor replaced, and rename(2) says EBUSY of it, as
// if it could be tried again later. Of what is protected the broker says EROFS, as
// open(2) does. It only chooses the error: whatever the caller's memory and directories
// become until the kernel makes the call, the mount holds.

// sysRename is rename(2), which newer machines lack.
var sysRename = seccomp.Number(runtime.GOARCH, "rename")

// Renames reports whether the call is rename(2) or one of its kind.
func (c *Call) Renames() bool {
	return c.nr == sysRename || c.nr == unix.SYS_RENAMEAT || c.nr == unix.SYS_RENAMEAT2
}

// MeetsMount reports whether one of the two paths of a call that renames is a mount
// point by which something is protected. Most calls are told by the names alone.
func (c *Call) MeetsMount() bool {
	dirs, names := [2]int{unix.AT_FDCWD, unix.AT_FDCWD}, [2]uint64{c.args[0], c.args[1]}
	if c.nr != sysRename {
		dirs, names = [2]int{int(int32(c.args[0])), int(int32(c.args[2]))}, [2]uint64{c.args[1], c.args[3]}
	}
	for i := range names {
		name := strings.TrimRight(c.Text(names[i]), "/")
		if c.broker.policy.Holds(path.Base(name)) && c.mountPoint(dirs[i], name) {
			return true
		}
	}
	return false
}

// mountPoint reports whether something is mounted on a path of the caller's. It says no
// where that goes through an absolute link, which leads out of the caller's mount
// namespace here.
func (c *Call) mountPoint(dirfd int, name string) bool {
	r, errno := c.route(dirfd, name)
	var st unix.Statx_t
	return errno == 0 &&
		unix.Statx(r.from, strings.TrimLeft(r.path, "/"), unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st) == nil &&
		st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
