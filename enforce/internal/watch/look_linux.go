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
	name   string // of the system call
	proc   string // the thread's directory in /proc
	thread *thread
	made   int // calls of the thread by then

	act answer.Act
	via string // the program whose interpreter that is
}

// form says how calls name what they are about: by which arguments. -1 is none.
type form struct {
	op    answer.Op
	fd    int // of a directory that the path counts from, or of a process
	path  int // or address, or the number of a process
	rest  int // flags, mode or the like
	calls []string
}

// forms are the calls that are looked at; those of two paths have the second right
// after the first.
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
	{answer.Connect, -1, 1, 2, []string{"connect"}}, {answer.Bind, -1, 1, 2, []string{"bind"}}, {answer.Bind, -1, -1, -1, []string{"listen"}},
	{answer.Signal, -1, 0, -1, []string{"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}}, {answer.Signal, 0, -1, -1, []string{"pidfd_send_signal"}},
	{answer.Trace, -1, 0, -1, []string{"process_vm_readv", "process_vm_writev"}}, {answer.Trace, -1, 1, -1, []string{"ptrace"}}, {answer.Trace, 0, -1, -1, []string{"pidfd_getfd"}},
}

// read makes an act of the call; false says that it is certain not to be refused.
func (l *look) read() bool {
	i := slices.IndexFunc(forms, func(f form) bool { return slices.Contains(f.calls, l.name) })
	if i < 0 {
		return false
	}
	f := &forms[i]
	l.act.Op = f.op
	switch f.op {
	case answer.Connect, answer.Bind:
		return f.path < 0 || l.readAddress(f)
	case answer.Signal, answer.Trace:
		return l.readProcess(f)
	}
	rest := l.argument(f.rest)
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
		l.forget() // links or directories may move
	}
	t, ok := l.find(f.fd, l.call.Text(l.argument(f.path)), f.follows(l.name, rest))
	if !ok {
		return false
	}
	l.act = answer.Act{Op: f.op, Path: t.path, Mode: t.mode, Missing: !t.exists, Inside: strings.HasPrefix(t.path, l.proc+"/")}
	return l.readFile(f, rest)
}

// argument is one of the call's, 0 for none.
func (l *look) argument(i int) uint64 {
	if i < 0 {
		return 0
	}
	return l.call.Args()[i]
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
func (l *look) readFile(f *form, rest uint64) bool {
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
		return l.readTo(f, rest)
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
func (l *look) readTo(f *form, rest uint64) bool {
	fd, at := -1, 1
	if f.fd >= 0 {
		fd, at = 2, 3
	}
	raw := l.call.Text(l.argument(at))
	t, ok := l.find(fd, raw, false)
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

// readAddress takes the address of a socket.
func (l *look) readAddress(f *form) bool {
	a, connect := &l.act, f.op == answer.Connect
	var name string
	if name, a.Name, a.Port = l.call.Address(l.argument(f.path), l.argument(f.rest)); name != "" {
		t, ok := l.find(-1, name, connect)
		a.Path, a.Missing = t.path, !t.exists
		return ok && t.exists == connect
	}
	return a.Name != "" && connect || a.Port != 0
}

// readProcess takes a process by its number, or a descriptor; 0 is one that can't be
// told. Threads signal their own process all the time.
func (l *look) readProcess(f *form) bool {
	pid, tid := int(int32(l.argument(f.path))), strconv.Itoa(l.call.Tid())
	if f.fd >= 0 {
		pid = max(0, broker.PidOf(tid, int(int32(l.argument(f.fd)))))
	}
	l.act.Name = strconv.Itoa(pid)
	_, err := os.Lstat(process(pid) + "/task/" + tid)
	return err != nil
}
