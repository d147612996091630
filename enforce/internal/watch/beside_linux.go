package watch

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/answer"
	"github.com/zsbx/zsbx/internal/program"
)

// decide asks the plan, of execve(2) also about what is opened beside the program: the
// interpreter of a script, the loader of a dynamic program.
func (l *look) decide() answer.Answer {
	got, first := l.r.world.Decide(&l.act), l.act
	for depth := 0; first.Op == answer.Exec && got.Verdict == answer.Allowed && depth < program.Depth; depth++ {
		next := interpreter(l.proc, l.act.Path)
		t, ok := l.find(-1, next, true)
		if next == "" || !ok || !t.exists {
			break // ENOENT
		}
		l.act.Path, l.act.Mode, l.via = t.path, t.mode, first.Path
		got = l.r.world.Decide(&l.act)
	}
	if got.Verdict == answer.Allowed {
		l.act, l.via = first, ""
	}
	return got
}

// interpreter is what a program names, or "". The command may put another file, or a
// link, in its place: what is there then is neither waited for nor followed.
func interpreter(proc, name string) string {
	root, err := unix.Open(proc+"/root", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(root, name, &how)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	next, _ := program.Interpreter(f)
	return next
}

// outside reports whether the same would be refused to the same user without a plan:
// by the modes of files, by their owner, by who runs a process.
func (l *look) outside() bool {
	a := &l.act
	at, mode := a.Path, uint32(unix.W_OK)
	switch a.Op {
	case answer.Signal, answer.Trace:
		pid, _ := strconv.Atoi(a.Name)
		return pid != 0 && unix.Kill(pid, 0) == unix.EPERM
	case answer.Bind, answer.Call, answer.Metadata: // of a file of another user EPERM says so
		return false
	case answer.Connect:
		if a.Path == "" {
			return a.Name != "" && !listening(a.Name)
		}
	case answer.Exec:
		mode = unix.X_OK
	case answer.Open, answer.TempFile, answer.Ioctl:
		if a.Flags&(answer.Write|answer.Trunc) == 0 {
			mode = unix.R_OK
		}
		if a.Missing {
			at = path.Dir(at)
		}
	case answer.Make, answer.Remove, answer.Rename, answer.Exchange:
		at = path.Dir(at)
	case answer.Link:
		at = path.Dir(a.To)
	}
	return refusedOutside(at, mode) || a.To != "" && refusedOutside(path.Dir(a.To), mode)
}

// listening reports whether a program has a socket of an abstract name
// (proc_net(5), unix).
func listening(name string) bool {
	b, err := os.ReadFile("/proc/net/unix")
	return err != nil || bytes.Contains(append(b, '\n'), []byte(" @"+strings.ReplaceAll(name, "\x00", "@")+"\n"))
}

// refusedOutside asks for this process, which is who the command is (access(2)).
func refusedOutside(at string, mode uint32) bool {
	switch unix.Faccessat(unix.AT_FDCWD, at, mode, unix.AT_EACCESS) {
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return true
	}
	return false
}
