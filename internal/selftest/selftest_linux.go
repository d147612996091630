package selftest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
)

// linuxScene is a scene, the policy whose plans are attacked, and the results.
type linuxScene struct {
	*scene
	caps   enforce.Caps
	policy resolve.Resolved
	proofs []Proof
	err    error // of the first attack that could not be made
}

func (made *scene) attack(caps enforce.Caps) ([]Proof, error) {
	enforce.ProbeNamespaces(&caps)
	s := &linuxScene{scene: made, caps: caps}
	if err := s.tryAll(); err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	return s.proofs, s.err
}

// plan returns the plan for the policy with a network.
func (s *linuxScene) plan(n resolve.ResolvedNet) *enforce.Plan {
	r := s.policy
	r.Net = n
	return enforce.NewPlan(&r, s.caps, nil, enforce.Options{})
}

// try makes an attack, the last of the steps, with and without the restrictions of plan. name
// is the gap of its promise.
func (s *linuxScene) try(name, promise, means string, plan *enforce.Plan, steps ...fork.Step) {
	if s.err != nil {
		return
	}
	confined, err := s.inChild(plan, steps)
	free, freeErr := s.inChild(nil, steps)
	err = errors.Join(err, freeErr)
	if err != nil {
		s.err = fmt.Errorf("self-test of %s: %w", name, err)
		return
	}
	attack := steps[len(steps)-1].Name
	detail := fmt.Sprintf("%s: %s, without restrictions %s", attack, answerText(confined), answerText(free))
	p := Proof{Name: name, Promise: promise, Detail: detail}
	switch {
	case confined != 0 && confined != free:
		p.Held = true
		p.Means = means
	case confined == unix.EPERM, confined == unix.EACCES, confined == unix.ENOSYS && name == enforce.GapKernel:
		p.Held = true
		p.Means = "refused to zsbx, too" // by the machine, or by a sandbox around this process
	}
	p.Gap = slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == name })
	s.proofs = append(s.proofs, p)
}

// inChild makes the steps in a new process, confined by plan unless it is nil, and returns the
// errno of the last one, or 0. The others must succeed. If there are others, the result of the
// one before the last becomes the last one's first argument.
func (s *linuxScene) inChild(plan *enforce.Plan, steps []fork.Step) (unix.Errno, error) {
	// The keeper waits for the steps, since this process may have to answer some of them
	// (Plan.Broker). The command is a directory, which can't be executed, so nothing else runs.
	c := &fork.Command{Path: "/", Args: []string{"/"}}
	if plan != nil {
		if err := confine(plan, c); err != nil {
			return 0, err
		}
	}
	c.Steps = append(c.Steps, steps...)
	last := &c.Steps[len(c.Steps)-1]
	if len(steps) > 1 {
		last.Back[0] = 1
	}
	proc, err := fork.Start(c)
	if err == nil { // the last step executed another program, which may still open its file
		_, err = proc.Next()
		return 0, errors.Join(err, proc.Close())
	}
	var step *fork.StepError
	switch {
	case !errors.As(err, &step):
	case step.Stage == fork.StageExec:
		return 0, nil
	case step.Stage == fork.StageCommand && step.Name == last.Name:
		return step.Errno, nil
	}
	return 0, err
}

func answerText(e unix.Errno) string {
	if e == 0 {
		return "done"
	}
	return cmp.Or(unix.ErrnoName(e), fmt.Sprintf("errno %d", e))
}

// memory has what the arguments of steps point to. It is never freed, since a process tests
// itself once.
var memory fork.Memory

// put stores v in memory and returns its address.
func put[T any](v T) uintptr { return uintptr(unsafe.Pointer(fork.Put(&memory, v))) }

// text stores a string in memory and returns its address.
func text(s string) uintptr { return uintptr(unsafe.Pointer(memory.Text(s))) }

// call returns a step that makes a system call.
func call(name string, nr uintptr, args ...uintptr) fork.Step {
	s := fork.Step{Name: name, Nr: nr}
	copy(s.Args[:], args)
	return s
}

// at is AT_FDCWD as an argument.
const at = ^uintptr(99)

func opening(file string, flags uintptr) fork.Step {
	return call("openat(2) "+path.Base(file), unix.SYS_OPENAT, at, text(file), flags)
}

func socket(name string, family, kind uintptr) fork.Step {
	return call(name, unix.SYS_SOCKET, family, kind)
}

// connectUnix connects a new socket to a path, or to an abstract name after an "@".
func connectUnix(what, name string) []fork.Step {
	addr := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	if abstract, ok := strings.CutPrefix(name, "@"); ok {
		addr = append(append(addr, 0), abstract...)
	} else {
		addr = append(append(addr, name...), 0)
	}
	to := uintptr(unsafe.Pointer(&fork.PutSlice(&memory, addr)[0]))
	return []fork.Step{
		socket("socket(2)", unix.AF_UNIX, unix.SOCK_STREAM),
		call("connect(2) to "+what, unix.SYS_CONNECT, 0, to, uintptr(len(addr))),
	}
}
