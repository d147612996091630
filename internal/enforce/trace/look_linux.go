package trace

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/program"
)

// look is one traced call, and the report if it is refused.
type look struct {
	Refusal
	call  *broker.Call
	r     *Recorder
	args  [7]uint64 // the last one is for none
	proc  string    // the thread's directory in /proc
	steps int       // steps of path resolution so far
}

// form says which arguments of some calls have what.
type form struct {
	op    answer.Op
	fd    int    // the directory that the path starts from, or a process
	path  int    // or an address, or a process number
	rest  int    // flags, mode and so on
	with  uint64 // flags or mode that the call implies
	calls []string
}

// Instead of an argument a form can have nothing, or the working directory.
const none, cwd = 6, 7

// forms has the traced calls. In calls with two paths the second comes right after the first.
var forms = []form{
	{answer.Open, cwd, 0, 1, 0, []string{"open"}},
	{answer.Open, 0, 1, 2, 0, []string{"openat", "openat2"}},
	{answer.Open, cwd, 0, none, unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, []string{"creat"}},
	{answer.Exec, cwd, 0, none, 0, []string{"execve"}},
	{answer.Exec, 0, 1, 4, 0, []string{"execveat"}},
	{answer.Make, cwd, 0, 1, 0, []string{"mknod"}},
	{answer.Make, 0, 1, 2, 0, []string{"mknodat"}},
	{answer.Make, cwd, 0, none, unix.S_IFDIR, []string{"mkdir"}},
	{answer.Make, 0, 1, none, unix.S_IFDIR, []string{"mkdirat"}},
	{answer.Make, cwd, 1, none, unix.S_IFLNK, []string{"symlink"}},
	{answer.Make, 1, 2, none, unix.S_IFLNK, []string{"symlinkat"}},
	{answer.Remove, cwd, 0, none, 0, []string{"unlink", "rmdir"}},
	{answer.Remove, 0, 1, none, 0, []string{"unlinkat"}},
	{answer.Rename, cwd, 0, none, 0, []string{"rename"}},
	{answer.Rename, 0, 1, none, 0, []string{"renameat"}},
	{answer.Rename, 0, 1, 4, 0, []string{"renameat2"}},
	{answer.Link, cwd, 0, none, 0, []string{"link"}},
	{answer.Link, 0, 1, 4, 0, []string{"linkat"}},
	{answer.Truncate, cwd, 0, none, 0, []string{"truncate"}},
	{answer.Metadata, cwd, 0, none, 0, []string{"chmod", "chown", "utime", "utimes", "setxattr", "removexattr"}},
	{answer.Metadata, cwd, 0, none, unix.AT_SYMLINK_NOFOLLOW, []string{"lchown", "lsetxattr", "lremovexattr"}},
	{answer.Metadata, 0, 1, none, 0, []string{"fchmodat", "futimesat"}},
	{answer.Metadata, 0, 1, 3, 0, []string{"fchmodat2", "utimensat"}},
	{answer.Metadata, 0, 1, 4, 0, []string{"fchownat"}},
	{answer.Metadata, 0, none, none, 0, []string{"fchmod", "fchown", "fsetxattr", "fremovexattr"}},
	{answer.Ioctl, 0, none, none, 0, []string{"ioctl"}},
	{answer.Connect, cwd, 1, 2, 0, []string{"connect"}},
	{answer.Bind, cwd, 1, 2, 0, []string{"bind"}},
	{answer.Bind, cwd, none, none, 0, []string{"listen"}},
	{answer.Signal, cwd, 0, none, 0, []string{"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}},
	{answer.Signal, 0, none, none, 0, []string{"pidfd_send_signal"}},
	{answer.Trace, cwd, 0, none, 0, []string{"process_vm_readv", "process_vm_writev"}},
	{answer.Trace, cwd, 1, none, 0, []string{"ptrace"}},
	{answer.Trace, 0, none, none, 0, []string{"pidfd_getfd"}},
}

// read sets the call's act. It returns false if the call certainly won't be refused. A call
// without a form gets no operation.
func (l *look) read() bool {
	i := slices.IndexFunc(forms, func(f form) bool { return slices.Contains(f.calls, l.Call) })
	if i < 0 {
		return false
	}
	f := &forms[i]
	l.Act.Op = f.op
	switch f.op {
	case answer.Connect, answer.Bind:
		return f.path == none || l.readAddress(f)
	case answer.Signal, answer.Trace:
		return l.readProcess(f)
	}
	rest := l.args[f.rest] | f.with
	if l.Call == "openat2" { // its flags are in memory
		b, errno := l.call.Memory(rest, 8)
		if errno != 0 {
			return false
		}
		rest = binary.NativeEndian.Uint64(b)
	}
	if f.op == answer.Rename || f.op == answer.Link || f.with == unix.S_IFLNK {
		l.r.found.Clear() // links or directories may change
	}
	follow := false // whether to follow a link at the end of the path
	switch f.op {
	case answer.Open:
		follow = rest&(unix.O_NOFOLLOW|unix.O_EXCL) == 0
	case answer.Link:
		follow = rest&unix.AT_SYMLINK_FOLLOW != 0
	case answer.Exec, answer.Truncate, answer.Metadata:
		follow = rest&unix.AT_SYMLINK_NOFOLLOW == 0
	}
	t, ok := l.find(f.fd, l.call.Text(l.args[f.path]), follow)
	l.Act = answer.Act{
		Op:      f.op,
		Path:    t.path,
		Mode:    t.mode,
		Missing: !t.exists,
		Inside:  strings.HasPrefix(t.path, l.proc+"/"),
		Reopen:  t.reopen,
	}
	return ok && l.readFile(f, rest)
}

// readFile sets what the call does to the file at the path.
func (l *look) readFile(f *form, rest uint64) bool {
	a := &l.Act
	switch f.op {
	case answer.Open:
		a.Flags = [4]answer.Flags{answer.Read, answer.Write, answer.Read | answer.Write}[rest&unix.O_ACCMODE]
		if rest&unix.O_TRUNC != 0 {
			a.Flags |= answer.Trunc
		}
		if rest&unix.O_CREAT != 0 {
			a.Flags |= answer.Creat
		}
		if rest&unix.O_TMPFILE == unix.O_TMPFILE {
			a.Op = answer.TempFile
		}
		return rest&unix.O_PATH == 0 && (!a.Missing || rest&unix.O_CREAT != 0 || l.unseen())
	case answer.Make:
		a.Mode = files.Mode(uint32(rest)).Type()
		return a.Missing
	case answer.Remove:
		return true
	case answer.Rename, answer.Link:
		return l.readTo(f, rest)
	case answer.Ioctl:
		return strings.HasPrefix(a.Path, "/dev/")
	}
	return !a.Missing || f.op == answer.Exec && l.unseen()
}

// readTo sets the second path of a call.
func (l *look) readTo(f *form, rest uint64) bool {
	fd := cwd
	at := 1
	if f.fd != cwd {
		fd = 2
		at = 3
	}
	raw := l.call.Text(l.args[at])
	t, ok := l.find(fd, raw, false)
	if raw == "." || strings.HasSuffix(raw, "/.") {
		t.path += "/." // the kernel treats the dot as a name in that directory
	}
	a := &l.Act
	a.To = t.path
	a.ToMode = t.mode
	a.ToExists = t.exists
	if f.op == answer.Rename && rest&unix.RENAME_EXCHANGE != 0 {
		a.Op = answer.Exchange
	}
	from := path.Dir(a.Path)
	to := path.Dir(a.To + "x")
	if from != to {
		a.CrossMount = broker.MountOf(from) != broker.MountOf(to)
	}
	return ok
}

// readAddress sets the address of a socket.
func (l *look) readAddress(f *form) bool {
	a := &l.Act
	connect := f.op == answer.Connect
	var name string
	name, a.Name, a.Port = l.call.Address(l.args[f.path], l.args[f.rest])
	if name != "" {
		t, ok := l.find(cwd, name, connect)
		a.Path = t.path
		a.Missing = !t.exists
		return ok && t.exists == connect
	}
	// For bind(2), port 0 means any port, and that needs a rule, too. Nothing listens on port
	// 0.
	return a.Port != 0 || connect == (a.Name != "")
}

// readProcess sets the process by number or descriptor, or 0 if it is unknown. It returns false
// for the thread's own process, since threads signal that all the time.
func (l *look) readProcess(f *form) bool {
	pid := int(int32(l.args[f.path]))
	tid := strconv.Itoa(l.Pid)
	if f.fd != cwd {
		pid = max(0, broker.PidOf(tid, int(int32(l.args[f.fd]))))
	}
	l.Act.Name = strconv.Itoa(pid)
	_, err := os.Lstat(process(pid) + "/task/" + tid)
	return err != nil
}

// decide asks the plan and reports whether the call may be refused. For execve(2) it also asks
// about what the kernel opens beside the program: a script's interpreter, a dynamic program's
// loader.
func (l *look) decide() bool {
	a := &l.Act
	opens := a.Op == answer.Open && a.Flags&answer.Creat == 0
	if a.Missing && (opens || a.Op == answer.Exec) { // see unseen
		l.refusedBy(answer.Unseen(a.Path))
		return true
	}
	first := l.Act
	got := l.r.world.Decide(&l.Act)
	loader := first.Op != answer.Exec
	for depth := 0; got.Verdict == answer.Allowed && !loader && depth < program.Depth; depth++ {
		var next string
		next, loader = l.interpreter()
		if next == "" {
			break
		}
		t, ok := l.find(cwd, next, true)
		if !ok || !t.exists {
			break // ENOENT
		}
		l.Act.Path = t.path
		l.Act.Mode = t.mode
		l.Via = first.Path
		got = l.r.world.Decide(&l.Act)
	}
	if got.Verdict == answer.Allowed {
		l.Act = first
		l.Via = ""
		if first.Op == answer.Exec && l.gains() {
			l.refusedBy(answer.Answer{Verdict: answer.Refused, By: answer.NoNewPrivs, At: l.Act.Path})
			return true
		}
		return false
	}
	l.refusedBy(got)
	l.Ordinary = l.outside()
	return true
}

// gains reports whether a program's file would give it another user's rights or capabilities
// (execve(2), capabilities(7)).
func (l *look) gains() bool {
	var st unix.Stat_t
	file := l.root(l.Act.Path) + l.Act.Path
	if unix.Stat(file, &st) != nil || st.Mode&0o111 == 0 {
		return false
	}
	_, err := unix.Getxattr(file, "security.capability", nil)
	return err == nil || st.Mode&unix.S_ISUID != 0 && int(st.Uid) != unix.Geteuid()
}

// mostLacks is how many missing files a thread may have wanted for the last one to be a
// reason to fail. Programs that look in many places can do without.
const mostLacks = 3

// fails reports whether a call that the plan allows will be refused by the modes of files. It
// records a call that fails because a file is missing.
func (l *look) fails() bool {
	switch l.Act.Op {
	case answer.Open, answer.TempFile, answer.Truncate, answer.Exec, answer.Connect:
	case answer.Make, answer.Remove, answer.Rename, answer.Link:
	default:
		return false
	}
	switch {
	case l.Act.Path == "":
		return false
	case l.Act.Missing && l.Act.Op != answer.Remove && l.lacks(): // rm -f removes what is not there
		l.refusedBy(answer.Answer{Verdict: answer.Allowed, Errno: "ENOENT"})
		l.Ordinary = true
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		if l.Act.Op != answer.Exec { // programs are looked for along PATH
			l.thread.lacks++
		}
		if l.thread.lacks <= mostLacks {
			l.r.fail(l.Refusal)
		}
		return false
	case !l.outside():
		return false
	}
	l.refusedBy(answer.Answer{Verdict: answer.Allowed})
	l.Ordinary = true
	return true
}

// systemDirs are the directories in which programs look for what they can do without.
var systemDirs = []string{
	"/usr", "/etc", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/proc", "/sys", "/dev", "/run", "/var/lib",
	"/nix", "/gnu",
}

// lacks reports whether a missing file is needed, or its directory to make it. What programs
// look for in the system's directories, such as translations and libraries, they can do
// without.
func (l *look) lacks() bool {
	at := l.Act.Path
	if l.Act.Flags&answer.Creat != 0 || l.Act.Op == answer.Make || l.Act.Op == answer.TempFile {
		at = path.Dir(at)
	}
	for _, dir := range systemDirs {
		if at == dir || strings.HasPrefix(at, dir+"/") {
			return false
		}
	}
	err := unix.Faccessat(unix.AT_FDCWD, l.root(at)+at, 0, unix.AT_EACCESS)
	return err == unix.ENOENT || err == unix.ENOTDIR
}

// outside reports whether the act would also be refused without a plan, by the modes of files
// or the owner of a process. This process has the command's user, so access(2) tells.
func (l *look) outside() bool {
	a := &l.Act
	mode := uint32(unix.W_OK)
	at := a.Path
	inside := a.Missing || a.To != "" || a.Op == answer.Remove // the directory changes
	switch a.Op {
	case answer.Signal, answer.Trace:
		pid, _ := strconv.Atoi(a.Name)
		return pid != 0 && unix.Kill(pid, 0) == unix.EPERM
	case answer.Bind, answer.Call, answer.Metadata: // EPERM says so for another user's file
		return false
	case answer.Connect:
		if a.Name != "" { // ordinary if nobody listens (/proc/net/unix, proc_net(5))
			b, err := os.ReadFile("/proc/net/unix")
			return err == nil && !bytes.Contains(b, []byte(" @"+strings.ReplaceAll(a.Name, "\x00", "@")+"\n"))
		}
	case answer.Exec:
		mode = unix.X_OK
	case answer.Open, answer.TempFile, answer.Ioctl:
		if a.Flags&(answer.Write|answer.Trunc) == 0 {
			mode = unix.R_OK
		}
	}
	if inside {
		at = path.Dir(at)
	}
	refused := func(at string) bool {
		err := unix.Faccessat(unix.AT_FDCWD, l.root(at)+at, mode, unix.AT_EACCESS)
		return err == unix.EACCES || err == unix.EPERM || err == unix.EROFS
	}
	return refused(at) || a.To != "" && refused(path.Dir(a.To))
}
