package selftest

import (
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
)

// Proof is what SelfTest found out about one promise.
type Proof struct {
	Name    string `json:"name"`    // the gap that stands for its lack, or "no-new-privs", "capabilities"
	Promise string `json:"promise"` // "no signals to processes outside"
	Held    bool   `json:"held"`    // a confined process was refused, where an unconfined one was not
	Means   string `json:"means"`   // "Landlock", "seccomp"
	Detail  string `json:"detail"`  // what was tried and what was answered
}

// Run proves what this machine holds by attacking it: for each promise a
// throw-away process puts on the restrictions of a plan for caps and tries
// what they forbid, and another one tries the same without them. A promise is
// held only if the first was refused and the second was not. On macOS, what
// can't be tried without harm is asked of the kernel instead (sandbox_check).
//
// The attacks are harmless: they are made on files, sockets and ports of a
// temporary directory's and on the calling process, whose limits are set to
// what they are. SelfTest takes some tens of milliseconds, on macOS more. The
// error says that the tests could not be made.
func Run(caps enforce.Caps) ([]Proof, error) { return selfTest(caps) }

// scene is what the attacks are made on.
type scene struct {
	dir           string // temporary; all of it is forbidden but "in"
	allowed, port int    // TCP ports that somebody listens on
	close         []func()
}

// newScene makes directories, files, programs, sockets by path, and listeners.
func newScene(dirs, files, programs, sockets []string) (*scene, error) {
	s := &scene{}
	if err := s.fill(dirs, files, programs, sockets); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *scene) fill(dirs, files, programs, sockets []string) error {
	dir, err := os.MkdirTemp("", "zsbx-check-")
	if err != nil {
		return err
	}
	s.close = append(s.close, func() { os.RemoveAll(dir) })
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	for _, d := range dirs {
		if err := os.Mkdir(s.dir+"/"+d, 0o700); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		names []string
		text  string
		mode  os.FileMode
	}{{files, "x", 0o600}, {programs, "#!/bin/sh\n", 0o700}} {
		for _, f := range kind.names {
			if err := os.WriteFile(s.dir+"/"+f, []byte(kind.text), kind.mode); err != nil {
				return err
			}
		}
	}
	for _, name := range sockets {
		if _, err := s.listen("unix", s.dir+"/"+name); err != nil {
			return err
		}
	}
	for _, port := range []*int{&s.allowed, &s.port} {
		a, err := s.listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		*port = a.(*net.TCPAddr).Port
	}
	return nil
}

// ending waits for the end of a process.
func ending(p *fork.Process) (syscall.WaitStatus, error) {
	for {
		if ev, err := p.Next(); err != nil || ev.Kind == fork.Exited {
			return ev.Status, err
		}
	}
}

// listen closes every connection that is made.
func (s *scene) listen(network, address string) (net.Addr, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return l.Addr(), nil
}

func (s *scene) end() {
	for _, f := range s.close {
		f()
	}
}
