package selftest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

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
	Gap     bool   `json:"-"`       // the plan said that it would not be held
}

// Run proves what this machine holds by attacking it: for each promise a
// throw-away process puts on the restrictions of a plan for caps and tries
// what they forbid, and another one tries the same without them. A promise is
// held only if the first was refused and the second was not, or both were because they
// may not (EPERM, EACCES). On macOS, what can't be tried without harm is asked of the
// kernel instead (sandbox_check).
//
// The attacks are harmless: they are made on files, sockets and ports of a
// temporary directory's and on the calling process, whose limits are set to
// what they are. SelfTest takes some tens of milliseconds, on macOS more. The
// error says that the tests could not be made.
func Run(caps enforce.Caps) ([]Proof, error) {
	s, err := newScene()
	defer s.end()
	if err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	return s.attack(caps)
}

// confine puts a plan on a command, and has answered what the kernel hands over.
func confine(plan *enforce.Plan, c *fork.Command) error {
	m, err := plan.Confine(c)
	if m != nil {
		go func() { _ = m.Serve() }() // which ends with the command
	}
	return err
}

// scene is what the attacks are made on.
type scene struct {
	dir           string // temporary; all of it is forbidden but "in"
	allowed, port int    // TCP ports that somebody listens on
	close         []func()
}

// newScene makes files, named as "ls -F" shows them: "x/" is a directory, "x*" a program,
// "x=" a socket that somebody listens on.
func newScene() (*scene, error) {
	s := &scene{}
	made, err := os.MkdirTemp("", "zsbx-check-")
	if err != nil {
		return s, err
	}
	s.close = append(s.close, func() { os.RemoveAll(made) })
	if s.dir, err = filepath.EvalSymlinks(made); err != nil {
		return s, err
	}
	for _, name := range strings.Fields("file prog* socket= empty/ in/ in/file in/prog* in/socket= in/denied in/own in/.git/ in/.git/config") {
		path := s.dir + "/" + strings.TrimRight(name, "/*=")
		switch name[len(name)-1] {
		case '/':
			err = os.Mkdir(path, 0o700)
		case '*':
			err = os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700)
		case '=':
			_, err = s.listen("unix", path)
		default:
			err = os.WriteFile(path, []byte("x"), 0o600)
		}
		if err != nil {
			return s, err
		}
	}
	for _, port := range []*int{&s.allowed, &s.port} {
		a, err := s.listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return s, err
		}
		*port = a.(*net.TCPAddr).Port
	}
	return s, nil
}

// listen has the kernel take connections, which nobody answers.
func (s *scene) listen(network, address string) (net.Addr, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, func() { l.Close() })
	return l.Addr(), nil
}

func (s *scene) end() {
	for _, f := range s.close {
		f()
	}
}
