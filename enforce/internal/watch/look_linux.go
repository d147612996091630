package watch

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/internal/files"
)

// look is one call that is looked at.
type look struct {
	call *broker.Call
	r    *Recorder
	name string

	act answer.Act
	at  target // what is at act.Path
	via string // the program whose interpreter that is
}

// form says how a call names what it is about: by which arguments. -1 is none.
type form struct {
	op    answer.Op
	dirfd int
	path  int
	rest  int // flags, mode or the like
}

// forms are the calls about files; those of two paths have the second right after
// the first.
func forms() map[string]form {
	const none = -1
	return map[string]form{
		"open": {answer.Open, none, 0, 1}, "openat": {answer.Open, 0, 1, 2}, "openat2": {answer.Open, 0, 1, 2}, "creat": {answer.Open, none, 0, none},
		"execve": {answer.Exec, none, 0, none}, "execveat": {answer.Exec, 0, 1, none},
		"mkdir": {answer.Make, none, 0, none}, "mkdirat": {answer.Make, 0, 1, none}, "mknod": {answer.Make, none, 0, 1}, "mknodat": {answer.Make, 0, 1, 2},
		"symlink": {answer.Make, none, 1, none}, "symlinkat": {answer.Make, 1, 2, none},
		"unlink": {answer.Remove, none, 0, none}, "rmdir": {answer.Remove, none, 0, none}, "unlinkat": {answer.Remove, 0, 1, 2},
		"rename": {answer.Rename, none, 0, none}, "renameat": {answer.Rename, 0, 1, none}, "renameat2": {answer.Rename, 0, 1, 4},
		"link": {answer.Link, none, 0, none}, "linkat": {answer.Link, 0, 1, 4}, "truncate": {answer.Truncate, none, 0, none},
		"chmod": {answer.Metadata, none, 0, none}, "fchmodat": {answer.Metadata, 0, 1, none}, "fchmodat2": {answer.Metadata, 0, 1, 3}, "fchmod": {answer.Metadata, 0, none, none},
		"chown": {answer.Metadata, none, 0, none}, "lchown": {answer.Metadata, none, 0, none}, "fchownat": {answer.Metadata, 0, 1, 4}, "fchown": {answer.Metadata, 0, none, none},
		"utime": {answer.Metadata, none, 0, none}, "utimes": {answer.Metadata, none, 0, none}, "futimesat": {answer.Metadata, 0, 1, none}, "utimensat": {answer.Metadata, 0, 1, 3},
		"setxattr": {answer.Metadata, none, 0, none}, "lsetxattr": {answer.Metadata, none, 0, none}, "fsetxattr": {answer.Metadata, 0, none, none},
		"removexattr": {answer.Metadata, none, 0, none}, "lremovexattr": {answer.Metadata, none, 0, none}, "fremovexattr": {answer.Metadata, 0, none, none},
		"ioctl": {answer.Ioctl, 0, none, none},
	}
}

// byName are the forms, made when they are first asked for: no start pays for them.
var byName = sync.OnceValue(forms)

// read makes an act of the call; false says that it is certain not to be refused.
func (l *look) read() bool {
	args := l.call.Args()
	f, file := byName()[l.name]
	if !file {
		return l.readOther(args)
	}
	dirfd, raw := unix.AT_FDCWD, ""
	if f.dirfd >= 0 {
		dirfd = int(int32(args[f.dirfd]))
	}
	if f.path >= 0 && args[f.path] != 0 {
		if raw = l.call.Text(args[f.path]); raw == "" && f.op != answer.Metadata && f.op != answer.Exec && f.op != answer.Link {
			return false
		}
	}
	rest := uint64(0)
	if f.rest >= 0 {
		rest = args[f.rest]
	}
	l.act.Op = f.op
	follow := l.follows(f.op, &rest)
	t, ok := l.r.paths.find(l.call.Tid(), dirfd, raw, follow)
	if !ok {
		return false
	}
	l.at, l.act.Path, l.act.Mode, l.act.Missing = t, t.path, t.mode, !t.exists
	l.act.Inside = strings.HasPrefix(t.path, process(l.call.Tid())+"/")
	switch f.op {
	case answer.Open:
		return l.readOpen(t, rest)
	case answer.Make:
		l.act.Mode = files.Mode(uint32(rest)).Type()
		switch l.name {
		case "mkdir", "mkdirat":
			l.act.Mode = fs.ModeDir
		case "symlink", "symlinkat":
			l.act.Mode = fs.ModeSymlink
			l.r.paths.real.forget() // links or directories may move
		}
		return !t.exists
	case answer.Remove:
		l.act.Mode = 0
		if l.name == "rmdir" || rest&unix.AT_REMOVEDIR != 0 {
			l.act.Mode = fs.ModeDir
		}
		return true
	case answer.Rename, answer.Link:
		l.r.paths.real.forget() // links or directories may move
		return l.readTo(args, f, rest)
	case answer.Ioctl:
		return strings.HasPrefix(t.path, "/dev/")
	}
	return t.exists
}

// follows says whether a link at the end of the path is followed. What openat2(2) has
// for flags lies in memory.
func (l *look) follows(op answer.Op, rest *uint64) bool {
	switch op {
	case answer.Open:
		switch l.name {
		case "creat":
			*rest = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
		case "openat2":
			b, errno := l.call.Memory(*rest, 8)
			if errno != 0 {
				return true
			}
			*rest = binary.NativeEndian.Uint64(b)
		}
		return *rest&unix.O_NOFOLLOW == 0 && *rest&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	case answer.Link:
		return *rest&unix.AT_SYMLINK_FOLLOW != 0
	case answer.Metadata:
		return l.name[0] != 'l' && *rest&unix.AT_SYMLINK_NOFOLLOW == 0
	}
	return op == answer.Exec || op == answer.Truncate
}

// readOpen takes what is opened for what.
func (l *look) readOpen(t target, flags uint64) bool {
	a := &l.act
	if flags&unix.O_PATH != 0 {
		return false
	}
	switch flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		a.Flags = answer.Read
	case unix.O_WRONLY:
		a.Flags = answer.Write
	case unix.O_RDWR:
		a.Flags = answer.Read | answer.Write
	}
	if flags&unix.O_TRUNC != 0 {
		a.Flags |= answer.Trunc
	}
	if flags&unix.O_CREAT != 0 {
		a.Flags |= answer.Creat
	}
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		a.Op = answer.TempFile
	}
	return t.exists || flags&unix.O_CREAT != 0
}

// readTo takes the second path of a call.
func (l *look) readTo(args [6]uint64, f form, rest uint64) bool {
	dirfd, at := unix.AT_FDCWD, 1
	if f.dirfd >= 0 {
		dirfd, at = int(int32(args[2])), 3
	}
	raw := l.call.Text(args[at])
	t, ok := l.r.paths.find(l.call.Tid(), dirfd, raw, false)
	if !ok {
		return false
	}
	if raw == "." || strings.HasSuffix(raw, "/.") {
		t.path += "/." // the kernel takes it for a name in the directory itself
	}
	a := &l.act
	a.To, a.ToMode, a.ToExists = t.path, t.mode, t.exists
	if strings.HasSuffix(a.Path, " (deleted)") { // a file without a name gets one
		*a = answer.Act{Op: answer.Make, Path: t.path, Missing: !t.exists}
		return true
	}
	const exchange = 2 // RENAME_EXCHANGE
	if f.op == answer.Rename && rest&exchange != 0 {
		a.Op = answer.Exchange
	}
	if from, to := path.Dir(a.Path), path.Dir(a.To+"x"); from != to {
		a.Apart = broker.MountOf(from) != broker.MountOf(to)
	}
	return true
}

// readOther makes an act of what is about sockets and processes.
func (l *look) readOther(args [6]uint64) bool {
	a := &l.act
	pid := 0
	switch l.name {
	case "connect", "bind":
		a.Op = answer.Op(l.name)
		var name string
		if name, a.Name, a.Port = l.call.Address(args[1], args[2]); name != "" {
			t, ok := l.r.paths.find(l.call.Tid(), unix.AT_FDCWD, name, l.name == "connect")
			a.Path, a.Missing = t.path, !t.exists
			return ok && t.exists == (l.name == "connect")
		}
		return a.Name != "" && a.Op == answer.Connect || a.Port != 0
	case "listen":
		a.Op = answer.Bind
		return true
	case "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo":
		a.Op, pid = answer.Signal, int(int32(args[0]))
	case "pidfd_send_signal":
		a.Op, pid = answer.Signal, l.pidfd(args[0])
	case "ptrace":
		a.Op, pid = answer.Trace, int(int32(args[1]))
	case "process_vm_readv", "process_vm_writev":
		a.Op, pid = answer.Trace, int(int32(args[0]))
	case "pidfd_getfd":
		a.Op, pid = answer.Trace, l.pidfd(args[0])
	default:
		return false
	}
	if pid > 0 { // threads signal their own process all the time
		if _, err := os.Lstat(process(pid) + "/task/" + strconv.Itoa(l.call.Tid())); err == nil {
			return false
		}
	}
	a.Name = strconv.Itoa(pid)
	return true
}

// pidfd is the process that a pidfd of the caller's is for, 0 if it can't be told.
func (l *look) pidfd(fd uint64) int {
	return max(0, broker.PidOf(strconv.Itoa(l.call.Tid()), int(int32(fd))))
}

// wandering reports whether the call would have the thread go on by another number:
// it executes a program, and is not the first of its process.
func (l *look) wandering() bool {
	return l.act.Op == answer.Exec && broker.ProcessOf(l.call.Tid()) != l.call.Tid()
}
