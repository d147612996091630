package selftest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// trial is one attack and what it proves.
type trial struct {
	name, promise, means string
	net                  policy.NetMode // of the plan that is attacked
	steps                []fork.Step    // the last is the attack
}

// scene is what the trials are made on.
type scene struct {
	dir           string // temporary; all of it is forbidden but "in"
	policy        *policy.Resolved
	allowed, port int // TCP ports that somebody listens on
	close         []func()
}

func selfTest(caps enforce.Caps) ([]Proof, error) {
	s, err := newScene()
	if err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	defer s.end()
	var out []Proof
	for _, t := range s.trials(caps) {
		p, err := s.try(caps, t)
		if err != nil {
			return out, fmt.Errorf("self-test of %s: %w", t.name, err)
		}
		out = append(out, p)
	}
	exec, err := s.tryExec(caps)
	if err != nil {
		return out, fmt.Errorf("self-test of %s: %w", enforce.GapFiles, err)
	}
	out = append(out, exec)
	broker, err := s.tryBroker(caps)
	if err != nil {
		return out, fmt.Errorf("self-test of inherited sockets: %w", err)
	}
	out = append(out, broker...)
	own, err := s.tryOwn(caps)
	if err != nil {
		return out, fmt.Errorf("self-test of %s: %w", enforce.GapOwnFiles, err)
	}
	out = append(out, own)
	mounts, err := s.tryMounts(caps)
	if err != nil {
		return out, fmt.Errorf("self-test of the mounts: %w", err)
	}
	return append(out, mounts...), nil
}

// try makes a trial's attack with and without restrictions.
func (s *scene) try(caps enforce.Caps, t trial) (Proof, error) {
	r := *s.policy
	r.Net = policy.ResolvedNet{Mode: t.net}
	if t.net == policy.NetPorts {
		r.Net.ConnectTCP = []policy.Port{{Number: uint16(s.allowed)}}
	}
	confined, err := inChild(enforce.NewPlan(&r, caps, nil), t.steps)
	if err != nil {
		return Proof{}, err
	}
	free, err := inChild(nil, t.steps)
	if err != nil {
		return Proof{}, err
	}
	return proof(t, t.steps[len(t.steps)-1].Name, confined, free), nil
}

// proof checks the answers that a confined and an unconfined process got.
func proof(t trial, call string, confined, free int) Proof {
	p := Proof{Name: t.name, Promise: t.promise,
		Detail: fmt.Sprintf("%s: %s, without restrictions %s", call, answerText(confined), answerText(free))}
	switch {
	case confined < 0 && confined != free:
		p.Held, p.Means = true, t.means
	case closed(confined) && t.name == enforce.GapKernel:
		p.Held, p.Means = true, "the kernel's settings, without zsbx too"
	}
	return p
}

// closed reports whether an answer is that of something that is not available.
func closed(answer int) bool {
	return answer == -int(unix.EPERM) || answer == -int(unix.ENOSYS)
}

// tryExec executes a file outside. It is not a step: a step that succeeds
// would be the end of the others.
func (s *scene) tryExec(caps enforce.Caps) (Proof, error) {
	start := func(plan *enforce.Plan) (int, error) {
		c := &fork.Command{Path: s.dir + "/prog", Args: []string{"prog"}}
		if plan != nil {
			if err := plan.Confine(c); err != nil {
				return 0, err
			}
		}
		return waitExec(c)
	}
	confined, err := start(enforce.NewPlan(s.policy, caps, nil))
	if err != nil {
		return Proof{}, err
	}
	free, err := start(nil)
	return proof(trial{name: enforce.GapFiles, promise: "files are executed only where allowed", means: "Landlock"},
		"execve(2) prog", confined, free), err
}

// waitExec starts a command and waits for its end; the answer is that of
// execve(2).
func waitExec(c *fork.Command) (int, error) {
	proc, err := fork.Start(c)
	if se := (*fork.StepError)(nil); errors.As(err, &se) && fork.ShortageOf(err) == nil {
		return -int(se.Errno), nil
	}
	if err != nil {
		return 0, err
	}
	defer proc.Close()
	for {
		if ev, err := proc.Next(); err != nil || ev.Kind == fork.Exited {
			return 0, err
		}
	}
}

// newScene makes the files and opens the sockets.
func newScene() (*scene, error) {
	s := &scene{}
	dir, err := os.MkdirTemp("", "zsbx-check-")
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, func() { os.RemoveAll(dir) })
	if s.dir, err = filepath.EvalSymlinks(dir); err == nil {
		err = s.fill()
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *scene) end() {
	for _, f := range s.close {
		f()
	}
}

func (s *scene) fill() error {
	in := s.dir + "/in"
	for _, d := range []string{in, in + "/.git", s.dir + "/empty"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	for _, f := range []string{"file", deniedFile, protectedFile, ownFile} {
		if err := os.WriteFile(s.dir+"/"+f, []byte("x"), 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.dir+"/prog", []byte("#!/bin/sh\n"), 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(in, &st); err != nil {
		return err
	}
	access := policy.Read | policy.Write | policy.Exec
	s.policy = &policy.Resolved{OS: "linux", Dir: in, Net: policy.ResolvedNet{Mode: policy.NetOpen},
		Paths: []policy.Path{{Path: in, Access: access, Mode: os.ModeDir, ID: policy.FileID{Dev: st.Dev, Ino: st.Ino},
			Rule: policy.Rule{Path: in, Access: access, Origin: policy.Origin{Source: "self-test"}}}}}
	for _, name := range []string{s.socket(), s.abstract()} {
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		s.close = append(s.close, func() { l.Close() })
	}
	var err error
	if s.allowed, err = s.listen(); err == nil {
		s.port, err = s.listen()
	}
	return err
}

func (s *scene) socket() string   { return s.dir + "/socket" }
func (s *scene) abstract() string { return "@zsbx-check-" + filepath.Base(s.dir) }

// listen listens on some port of the loopback interface.
func (s *scene) listen() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	s.close = append(s.close, func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port, nil
}

// unixAddr is struct sockaddr_un.
func unixAddr(name string) (unsafe.Pointer, uintptr) {
	addr := &syscall.RawSockaddrUnix{Family: unix.AF_UNIX}
	for i := range len(name) {
		addr.Path[i] = int8(name[i])
	}
	size := unsafe.Offsetof(addr.Path) + uintptr(len(name))
	if name[0] == '@' {
		addr.Path[0] = 0
	} else {
		size++
	}
	return unsafe.Pointer(addr), size
}
