package enforce

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// caller is the thread that made a mediated call. What is looked up by its
// number may be about another thread that got the number later, until
// mediator.valid says otherwise.
type caller struct {
	tid    int
	keeper *fork.Fetcher // looks where this process may not; or nil
}

// socket is a socket of the command: a copy of its descriptor, which means the
// same socket whatever the command does to its own.
type socket struct {
	fd     int
	domain int // AF_*
	kind   int // SOCK_*
}

// socket fetches a socket of the caller (pidfd_getfd(2)).
func (c caller) socket(fd int) (socket, unix.Errno) {
	got, errno := c.descriptor(fd)
	switch errno {
	case 0:
	case unix.EBADF:
		return socket{}, unix.EBADF
	default:
		return socket{}, unix.EACCES
	}
	var err error
	s := socket{fd: got}
	if s.domain, err = unix.GetsockoptInt(got, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil {
		s.kind, err = unix.GetsockoptInt(got, unix.SOL_SOCKET, unix.SO_TYPE)
	}
	if err != nil {
		unix.Close(got)
		return socket{}, err.(unix.Errno)
	}
	return s, 0
}

// descriptor copies a descriptor of the caller, or of its process where the
// kernel can't tell threads apart (PIDFD_THREAD came with Linux 6.9). A thread
// with descriptors of its own is then taken for the process's first thread:
// what is fetched is what is judged and connected, so that this fools nobody
// but itself.
func (c caller) descriptor(fd int) (int, unix.Errno) {
	const pidfdThread = unix.O_EXCL
	pid, flags := c.tid, 0
	pidfd, err := unix.PidfdOpen(pid, flags)
	if err != nil {
		flags = pidfdThread
		pidfd, err = unix.PidfdOpen(pid, flags)
	}
	if err != nil {
		st, statusErr := c.status()
		if statusErr != nil {
			return -1, unix.ESRCH
		}
		pid, flags = st.process, 0
		pidfd, err = unix.PidfdOpen(pid, flags)
	}
	if err != nil {
		return -1, asErrno(err)
	}
	defer unix.Close(pidfd)
	got, err := unix.PidfdGetfd(pidfd, fd, 0)
	switch {
	case err == nil:
		return got, 0
	case err == unix.EPERM && c.keeper != nil:
		return c.keeper.Descriptor(pid, flags, fd)
	}
	return -1, asErrno(err)
}

// memory reads n bytes of the caller's memory, once.
func (c caller) memory(at uint64, n int) ([]byte, unix.Errno) {
	buf := make([]byte, n)
	if n == 0 {
		return buf, 0
	}
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(n)
	remote := unix.RemoteIovec{Base: uintptr(at), Len: n}
	r, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(c.tid),
		uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	got := int(r)
	if errno == unix.EPERM && c.keeper != nil {
		got, errno = c.keeper.Memory(c.tid, at, buf)
	}
	switch {
	case errno == unix.EFAULT || errno == 0 && got != n:
		return nil, unix.EFAULT
	case errno != 0:
		return nil, unix.EACCES
	}
	return buf, 0
}

// status is what proc_pid_status(5) tells of the caller.
type status struct {
	process                   int // the thread group
	uid, gid                  int // effective
	groups                    []int
	pending, blocked, ignored uint64 // signals
}

func (c caller) status() (status, error) {
	b, err := readProc(fmt.Sprintf("/proc/%d/status", c.tid))
	if err != nil {
		return status{}, err
	}
	var s status
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		number := func(i int) int {
			f := bytes.Fields(value)
			if i >= len(f) {
				return -1
			}
			n, _ := strconv.Atoi(string(f[i]))
			return n
		}
		set := func() uint64 {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
			return n
		}
		switch string(name) {
		case "Tgid":
			s.process = number(0)
		case "Uid":
			s.uid = number(1)
		case "Gid":
			s.gid = number(1)
		case "Groups":
			for _, f := range bytes.Fields(value) {
				n, _ := strconv.Atoi(string(f))
				s.groups = append(s.groups, n)
			}
		case "SigPnd", "ShdPnd":
			s.pending |= set()
		case "SigBlk":
			s.blocked = set()
		case "SigIgn":
			s.ignored = set()
		}
	}
	return s, nil
}

// readProc reads a file of /proc, which mostly fits into one read(2): every
// connection waits for it where zsbx runs as root.
func readProc(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, b[len(b):cap(b)])
		if n <= 0 || err != nil {
			return b, err
		}
		if b = b[:len(b)+n]; len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// mountPoint identifies a directory and the mount it was reached by.
type mountPoint struct{ mount, ino uint64 }

func mountOf(path string) (mountPoint, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return mountPoint{}, err
	}
	return mountPoint{st.Mnt_id, st.Ino}, nil
}

// fileSystem is the device of the file system that an open file of the caller
// is on, by its mount (proc_pid_mountinfo(5)).
func (c caller) fileSystem(fd int) (device [2]uint32, _ error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return device, err
	}
	mounts, err := readProc(fmt.Sprintf("/proc/%d/mountinfo", c.tid))
	if err != nil {
		return device, err
	}
	for line := range bytes.Lines(mounts) {
		var id, parent uint64
		if n, _ := fmt.Sscanf(string(line), "%d %d %d:%d", &id, &parent, &device[0], &device[1]); n == 4 && id == st.Mnt_id {
			return device, nil
		}
	}
	return device, unix.ENOENT
}

// own splits a path that begins with something of the caller's own that only
// the kernel can follow (its directories and descriptors in /proc) into that,
// as others have to write it, and the rest.
func (c caller) own(path string) (link, rest string, ok bool) {
	for _, self := range []struct{ prefix, below string }{{"/proc/self/", ""}, {"/proc/thread-self/", ""},
		{fmt.Sprintf("/proc/%d/", c.tid), ""}, {"/dev/fd/", "fd/"}} {
		if below, cut := strings.CutPrefix(path, self.prefix); cut {
			path, ok = self.below+below, true
			break
		}
	}
	if !ok {
		return "", "", false
	}
	first, rest, _ := strings.Cut(path, "/")
	if first == "fd" {
		first, rest, _ = strings.Cut(rest, "/")
		first = "fd/" + first
	}
	return fmt.Sprintf("/proc/%d/%s", c.tid, first), strings.TrimLeft(rest, "/"), true
}

// lookup opens what the caller means by a path, as a reference to an inode.
// What it finds is judged by its inode, so that a path that is read otherwise
// than the kernel would (links in a root directory of the command's own, the
// magic ones of /proc) can lead to a refusal and not around one.
func (c caller) lookup(path string, own mountPoint) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	base, from := unix.AT_FDCWD, fmt.Sprintf("/proc/%d/cwd", c.tid)
	if link, rest, ok := c.own(path); ok {
		if rest == "" {
			return unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
		}
		from, path = link, rest
	} else if path[0] == '/' {
		from = fmt.Sprintf("/proc/%d/root", c.tid)
		at, err := mountOf(from)
		if err != nil {
			return -1, err
		}
		if at == own {
			from = ""
		} else {
			how.Resolve |= unix.RESOLVE_IN_ROOT
		}
	}
	if from != "" {
		var err error
		if base, err = unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
			return -1, err
		}
		defer unix.Close(base)
	}
	if how.Resolve == 0 {
		return unix.Openat(base, path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	return unix.Openat2(base, path, &how)
}
