package selftest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
)

// Proof is what Run found out about one promise.
type Proof struct {
	Name    string `json:"name"`    // the promise's gap, or "no-new-privs", "capabilities"
	Promise string `json:"promise"` // "no signals to processes outside"
	Held    bool   `json:"held"`    // a confined process was refused and an unconfined one was not
	Means   string `json:"means"`   // "Landlock", "seccomp"
	Detail  string `json:"detail"`  // what was tried, and the answers
	Gap     bool   `json:"-"`       // the plan has a gap for it
}

// Run proves what this machine enforces. For each promise a throw-away process takes on the
// restrictions of a plan for caps and tries what they forbid, and another one tries the same
// without them. A promise is held if the first was refused and the second was not, or if both
// were refused for lack of permission (EPERM, EACCES). On macOS, Run asks the kernel
// (sandbox_check) about acts that could do harm.
//
// The attacks are harmless. Their targets are files, sockets and ports made for them, and the
// calling process, whose limits are set to their present values. Run takes some tens of
// milliseconds, on macOS more. It returns an error if the attacks could not be made.
func Run(caps enforce.Caps) ([]Proof, error) {
	s, err := newScene()
	defer s.end()
	if err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	return s.attack(caps)
}

// confine applies a plan to a command, and answers the calls that the kernel hands over.
func confine(plan *enforce.Plan, c *fork.Command) error {
	b, err := plan.Confine(c)
	if b != nil {
		go func() { _ = b.Serve() }() // ends with the command
	}
	return err
}

// scene has the targets of the attacks.
type scene struct {
	dir           string // temporary; all of it is forbidden except "in"
	allowed, port int    // TCP ports with a listener
	close         []func()
}

// targets are the files of a scene, named as by "ls -F": "x/" is a directory, "x*" a program, "x="
// a listening socket.
const targets = `
	file prog* socket= empty/
	in/ in/file in/prog* in/socket= in/denied in/own in/.git/ in/.git/config
	shut/ shut/.hg/ shut/.git/ shut/.git/config shut/.git/hooks/
	far/ far/git/ far/git/HEAD far/git/objects/ far/git/config far/tree/`

// newScene makes the targets, and TCP ports with a listener.
func newScene() (*scene, error) {
	s := &scene{}
	made, err := os.MkdirTemp("", "zsbx-check-")
	if err != nil {
		return s, err
	}
	s.close = append(s.close, func() { os.RemoveAll(made) })
	s.dir, err = filepath.EvalSymlinks(made)
	if err != nil {
		return s, err
	}
	for _, name := range strings.Fields(targets) {
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

// listen makes the kernel accept connections, which nobody answers.
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
