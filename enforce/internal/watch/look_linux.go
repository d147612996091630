package watch

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/internal/files"
)

// look is one call that is looked at.
type look struct {
	call   *broker.Call
	r      *Recorder
	name   string
	thread *thread
	made   int // calls of the thread by then

	act answer.Act
	uid uint32 // who owns what is at act.Path
	via string // the program whose interpreter that is
}

// form says how calls name what they are about: by which arguments. -1 is none.
type form struct {
	op    answer.Op
	dirfd int
	path  int
	rest  int // flags, mode or the like
	calls []string
}

// forms are the calls about files; those of two paths have the second right after
// the first.
var forms = []form{
	{answer.Open, -1, 0, 1, []string{"open"}}, {answer.Open, 0, 1, 2, []string{"openat", "openat2"}}, {answer.Open, -1, 0, -1, []string{"creat"}},
	{answer.Exec, -1, 0, -1, []string{"execve"}}, {answer.Exec, 0, 1, -1, []string{"execveat"}},
	{answer.Make, -1, 0, 1, []string{"mkdir", "mknod"}}, {answer.Make, 0, 1, 2, []string{"mkdirat", "mknodat"}},
	{answer.Make, -1, 1, -1, []string{"symlink"}}, {answer.Make, 1, 2, -1, []string{"symlinkat"}},
	{answer.Remove, -1, 0, -1, []string{"unlink", "rmdir"}}, {answer.Remove, 0, 1, 2, []string{"unlinkat"}},
	{answer.Rename, -1, 0, -1, []string{"rename"}}, {answer.Rename, 0, 1, -1, []string{"renameat"}}, {answer.Rename, 0, 1, 4, []string{"renameat2"}},
	{answer.Link, -1, 0, -1, []string{"link"}}, {answer.Link, 0, 1, 4, []string{"linkat"}}, {answer.Truncate, -1, 0, -1, []string{"truncate"}},
	{answer.Metadata, -1, 0, -1, []string{"chmod", "chown", "lchown", "utime", "utimes", "setxattr", "lsetxattr", "removexattr", "lremovexattr"}},
	{answer.Metadata, 0, 1, -1, []string{"fchmodat", "futimesat"}}, {answer.Metadata, 0, 1, 3, []string{"fchmodat2", "utimensat"}},
	{answer.Metadata, 0, 1, 4, []string{"fchownat"}}, {answer.Metadata, 0, -1, -1, []string{"fchmod", "fchown", "fsetxattr", "fremovexattr"}},
	{answer.Ioctl, 0, -1, -1, []string{"ioctl"}},
}

// read makes an act of the call; false says that it is certain not to be refused.
func (l *look) read() bool {
	args := l.call.Args()
	i := slices.IndexFunc(forms, func(f form) bool { return slices.Contains(f.calls, l.name) })
	if i < 0 {
		return l.readOther(args)
	}
	f := &forms[i]
	dirfd, raw, rest := unix.AT_FDCWD, "", uint64(0)
	if f.dirfd >= 0 {
		dirfd = int(int32(args[f.dirfd]))
	}
	if f.path >= 0 {
		raw = l.call.Text(args[f.path])
	}
	if f.rest >= 0 {
		rest = args[f.rest]
	}
	switch l.name {
	case "creat":
		rest = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	case "openat2": // its flags lie in memory
		b, errno := l.call.Memory(rest, 8)
		if errno != 0 {
			return false
		}
		rest = binary.NativeEndian.Uint64(b)
	case "rename", "renameat", "renameat2", "symlink", "symlinkat":
		l.r.paths.forget() // links or directories may move
	}
	t, ok := l.r.paths.find(l.call.Tid(), dirfd, raw, f.follows(l.name, rest))
	if !ok {
		return false
	}
	l.uid = t.uid
	l.act = answer.Act{Op: f.op, Path: t.path, Mode: t.mode, Missing: !t.exists, Inside: strings.HasPrefix(t.path, process(l.call.Tid())+"/")}
	return l.readFile(f, args, rest)
}

// follows says whether a link at the end of the path is followed.
func (f *form) follows(name string, rest uint64) bool {
	switch f.op {
	case answer.Open:
		return rest&unix.O_NOFOLLOW == 0 && rest&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	case answer.Link:
		return rest&unix.AT_SYMLINK_FOLLOW != 0
	case answer.Metadata:
		return name[0] != 'l' && rest&unix.AT_SYMLINK_NOFOLLOW == 0
	}
	return f.op == answer.Exec || f.op == answer.Truncate
}

// readFile takes what is done to the file at the path.
func (l *look) readFile(f *form, args [6]uint64, rest uint64) bool {
	a := &l.act
	switch f.op {
	case answer.Open:
		return l.readOpen(rest)
	case answer.Make:
		a.Mode = files.Mode(uint32(rest)).Type()
		if strings.HasPrefix(l.name, "mkdir") {
			a.Mode = fs.ModeDir
		} else if strings.HasPrefix(l.name, "symlink") {
			a.Mode = fs.ModeSymlink
		}
		return a.Missing
	case answer.Remove:
		a.Mode = 0
		if l.name == "rmdir" || rest&unix.AT_REMOVEDIR != 0 {
			a.Mode = fs.ModeDir
		}
		return true
	case answer.Rename, answer.Link:
		return l.readTo(f, args, rest)
	case answer.Ioctl:
		return strings.HasPrefix(a.Path, "/dev/")
	}
	return !a.Missing
}

// readOpen takes what is opened for what.
func (l *look) readOpen(flags uint64) bool {
	a := &l.act
	a.Flags = [4]answer.Flags{answer.Read, answer.Write, answer.Read | answer.Write}[flags&unix.O_ACCMODE]
	if flags&unix.O_TRUNC != 0 {
		a.Flags |= answer.Trunc
	}
	if flags&unix.O_CREAT != 0 {
		a.Flags |= answer.Creat
	}
	if flags&unix.O_TMPFILE == unix.O_TMPFILE {
		a.Op = answer.TempFile
	}
	return flags&unix.O_PATH == 0 && (!a.Missing || flags&unix.O_CREAT != 0)
}

// readTo takes the second path of a call.
func (l *look) readTo(f *form, args [6]uint64, rest uint64) bool {
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
	a.Name = strconv.Itoa(pid)
	_, err := os.Lstat(process(pid) + "/task/" + strconv.Itoa(l.call.Tid()))
	return err != nil // threads signal their own process all the time
}

// pidfd is the process that a pidfd of the caller's is for, 0 if it can't be told.
func (l *look) pidfd(fd uint64) int {
	return max(0, broker.PidOf(strconv.Itoa(l.call.Tid()), int(int32(fd))))
}
