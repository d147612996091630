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

// interpreters asks about what execve(2) opens beside the program: the interpreter
// of a script, the loader of a dynamic program.
func (l *look) interpreters() answer.Answer {
	first := l.act.Path
	for range program.Depth {
		next := l.r.paths.interpreter(l.call.Tid(), &l.at)
		if next == "" {
			break
		}
		t, ok := l.r.paths.find(l.call.Tid(), unix.AT_FDCWD, next, true)
		if !ok || !t.exists {
			break // ENOENT
		}
		l.at, l.act.Path, l.act.Mode, l.via = t, t.path, t.mode, first
		if got := l.r.world.Decide(&l.act); got.Verdict != answer.Allowed {
			return got
		}
	}
	l.act.Path, l.via = first, ""
	return answer.Answer{Verdict: answer.Allowed}
}

// interpreter is what a program names, or "". A build starts few programs, many times.
func (p *paths) interpreter(tid int, at *target) string {
	if next, ok := p.interpreters.get(at.version); ok {
		return next
	}
	f, found, err := p.openProgram(tid, at.path)
	if err != nil {
		return ""
	}
	defer f.Close()
	next, _ := program.Interpreter(f)
	p.interpreters.put(found.version, next)
	return next
}

// openProgram opens a regular file. The command may put another one, or a link, in its
// place: opening a FIFO waits, and opening a device does something.
func (p *paths) openProgram(tid int, name string) (f *os.File, found target, _ error) {
	root := "/"
	if p.mounts.PrivateIn(name) != "" {
		root = process(tid) + "/root"
	}
	at, err := openIn(root, name, unix.O_PATH|unix.O_CLOEXEC, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, found, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, found, err
	}
	if found.fill(&st); found.mode != 0 {
		return nil, found, unix.EACCES
	}
	f, err = os.Open("/proc/self/fd/" + strconv.Itoa(at))
	return f, found, err
}

// outside finds out whether the same would be refused to the same user without a
// plan: by the modes of files, by their owner, by who runs a process.
func (l *look) outside(x *Refusal) {
	a := &x.Act
	at, mode := a.Path, uint32(unix.W_OK)
	switch a.Op {
	case answer.Signal, answer.Trace:
		pid, _ := strconv.Atoi(a.Name)
		x.Ordinary = pid != 0 && unix.Kill(pid, 0) == unix.EPERM
		return
	case answer.Connect:
		if a.Path == "" {
			x.Ordinary = a.Name != "" && !listening(a.Name)
			return
		}
	case answer.Bind, answer.Call:
		return
	case answer.Open, answer.TempFile, answer.Ioctl:
		if a.Flags&(answer.Write|answer.Trunc) == 0 {
			mode = unix.R_OK
		}
		if a.Op == answer.Open && a.Missing {
			at = path.Dir(at)
		}
	case answer.Exec:
		mode = unix.X_OK
	case answer.Make, answer.Remove:
		at = path.Dir(at)
	case answer.Rename, answer.Exchange:
		at = path.Dir(at)
		x.Ordinary = refusedOutside(path.Dir(a.To), mode)
	case answer.Link:
		at = path.Dir(a.To)
	case answer.Metadata:
		euid := uint32(os.Geteuid())
		x.Ordinary = euid != 0 && euid != l.at.version.uid && refusedOutside(at, mode)
		return
	}
	x.Ordinary = x.Ordinary || refusedOutside(at, mode)
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
