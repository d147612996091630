package selftest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// trial is one attack and what it proves.
type trial struct {
	name, promise, means string
	net                  policy.NetMode // of the plan that is attacked; "" is open
	steps                []fork.Step    // the last is the attack

	plan  *enforce.Plan            // that one; nil for the scene's policy
	stdin func() (*os.File, error) // what the process has as standard input; or nil
}

// linuxScene is a scene and the policy whose plans are attacked.
type linuxScene struct {
	*scene
	policy *policy.Resolved
}

// What a scene holds for the attacks on mounts, in the writable directory.
const (
	deniedFile    = "in/denied"
	ownFile       = "in/own"
	protectedFile = "in/.git/config"
)

func selfTest(caps enforce.Caps) ([]Proof, error) {
	enforce.ProbeNamespaces(&caps)
	made, err := newScene([]string{"in", "in/.git", "empty"}, []string{"file", deniedFile, protectedFile, ownFile}, []string{"prog"}, []string{"socket"})
	if err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	defer made.end()
	s := &linuxScene{scene: made}
	trials, err := s.trials(caps)
	if err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	var out []Proof
	for _, t := range trials {
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
	return append(out, exec), nil
}

// try makes a trial's attack with and without restrictions.
func (s *linuxScene) try(caps enforce.Caps, t trial) (Proof, error) {
	plan := t.plan
	if plan == nil {
		r := *s.policy
		r.Net = policy.ResolvedNet{Mode: cmp.Or(t.net, policy.NetOpen)}
		if t.net == policy.NetPorts {
			r.Net.ConnectTCP = []policy.Port{{Number: uint16(s.allowed)}}
		}
		plan = enforce.NewPlan(&r, caps, nil)
	}
	var answers [2]int
	for i, plan := range []*enforce.Plan{plan, nil} {
		var files []*os.File
		if t.stdin != nil {
			f, err := t.stdin()
			if err != nil {
				return Proof{}, err
			}
			defer f.Close()
			files = []*os.File{f}
		}
		var err error
		if answers[i], err = inChild(plan, files, t.steps); err != nil {
			return Proof{}, err
		}
	}
	return proof(t, t.steps[len(t.steps)-1].Name, answers[0], answers[1]), nil
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
func (s *linuxScene) tryExec(caps enforce.Caps) (Proof, error) {
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
	_, err = ending(proc)
	return 0, err
}

// unixAddr is struct sockaddr_un of a path, or of an abstract name after an "@".
func unixAddr(name string) []byte {
	addr := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	if abstract, ok := strings.CutPrefix(name, "@"); ok {
		return append(append(addr, 0), abstract...)
	}
	return append(append(addr, name...), 0)
}
