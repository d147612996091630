package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// trial is one attack and what it proves.
type trial struct {
	name, promise, means string
	plan                 *enforce.Plan // that is attacked
	listener             bool          // the process has a listening socket as standard input
	steps                []fork.Step   // the last is the attack
}

// linuxScene is a scene, the policy whose plans are attacked, and the attacks.
type linuxScene struct {
	*scene
	caps   enforce.Caps
	policy policy.Resolved
	trials []trial
}

func (made *scene) attack(caps enforce.Caps) ([]Proof, error) {
	enforce.ProbeNamespaces(&caps)
	s := &linuxScene{scene: made, caps: caps}
	if err := s.addTrials(); err != nil {
		return nil, fmt.Errorf("setting up the self-test: %w", err)
	}
	var out []Proof
	for _, t := range s.trials {
		p, err := t.try()
		if err != nil {
			return out, fmt.Errorf("self-test of %s: %w", t.name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// add adds a trial.
func (s *linuxScene) add(name, promise, means string, plan *enforce.Plan, steps ...fork.Step) {
	s.trials = append(s.trials, trial{name: name, promise: promise, means: means, plan: plan, steps: steps})
}

// plan is that for the policy with a network.
func (s *linuxScene) plan(n policy.ResolvedNet) *enforce.Plan {
	r := s.policy
	r.Net = n
	return enforce.NewPlan(&r, s.caps, nil)
}

// try makes the attack with and without restrictions.
func (t *trial) try() (Proof, error) {
	confined, err := t.inChild(t.plan)
	if err != nil {
		return Proof{}, err
	}
	free, err := t.inChild(nil)
	p := Proof{Name: t.name, Promise: t.promise,
		Detail: fmt.Sprintf("%s: %s, without restrictions %s", t.steps[len(t.steps)-1].Name, answerText(confined), answerText(free))}
	switch {
	case confined != 0 && confined != free:
		p.Held, p.Means = true, t.means
	case t.name == enforce.GapKernel && (confined == unix.EPERM || confined == unix.ENOSYS):
		p.Held, p.Means = true, "the kernel's settings, without zsbx too"
	}
	return p, err
}

// inChild makes the steps in a process of its own, confined by plan unless that is nil,
// and returns the errno of the last one, or 0. The others have to succeed; the result of
// the one before the last, if there is one, becomes the last one's first argument.
func (t *trial) inChild(plan *enforce.Plan) (unix.Errno, error) {
	// The keeper waits for the steps, not this process, which may have to
	// answer some of them (Plan.Mediation). A directory can't be executed.
	c := &fork.Command{Path: "/", Args: []string{"/"}, Keeper: &fork.Keeper{}}
	if t.listener {
		f, err := listener()
		if err != nil {
			return 0, err
		}
		defer f.Close()
		c.Files = []*os.File{f}
	}
	if plan != nil {
		if err := plan.Confine(c); err != nil {
			return 0, err
		}
	}
	c.Steps = append(c.Steps, t.steps...)
	last := &c.Steps[len(c.Steps)-1]
	if len(t.steps) > 1 {
		last.Back[0] = 1
	}
	proc, err := fork.Start(c)
	if err == nil { // the last step executed another program
		return 0, proc.Close()
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

// listener is a listening socket.
func listener() (*os.File, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // it has no fast open before Linux 6.2
	l, err := plain.Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return l.(*net.TCPListener).File()
}

// answerText is an answer for people.
func answerText(e unix.Errno) string {
	if e == 0 {
		return "done"
	}
	return cmp.Or(unix.ErrnoName(e), fmt.Sprintf("errno %d", e))
}
