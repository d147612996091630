package enforce

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/enforce/trace"
	"github.com/zsbx/zsbx/internal/fork"
)

// This file applies a plan to a command. confine turns it into the Steps that the child makes
// between fork and exec, in an order that the kernel allows: the mount namespace (a process in
// a Landlock domain can't mount), the working directory in it, capabilities, no_new_privs,
// Landlock, and last the filter, which checks all that follows. Nothing here restricts zsbx
// itself.

func (p *Plan) confine(c *fork.Command) (*broker.Broker, error) {
	dir, err := p.checkFiles(c)
	if err != nil {
		return nil, err
	}
	ruleset := -1
	var terminal *mounts.Terminal
	steps := p.capabilitySteps(c.Memory())
	if p.Landlock != nil || p.Seccomp != nil {
		steps = append(steps, fork.Step{
			Name: "prctl(PR_SET_NO_NEW_PRIVS)", Nr: unix.SYS_PRCTL,
			Args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1},
		})
	}
	if p.Landlock != nil {
		ruleset, err = p.Landlock.Create()
		if err != nil {
			return nil, err
		}
		p.reopened = p.reopen(c.Files, ruleset)
		terminal = p.Mounts.Terminal(c.Files)
		steps = append(steps, fork.Step{
			Tag: landlock.Tag, Name: "landlock_restrict_self(2)", Nr: unix.SYS_LANDLOCK_RESTRICT_SELF,
			Args: [6]uintptr{uintptr(ruleset), uintptr(p.Landlock.RestrictFlags())},
		})
	}
	b, filter, err := p.filterSteps(c.Memory())
	if err != nil {
		unix.Close(ruleset)
		return nil, err
	}
	steps = append(steps, filter...)
	if p.Mounts != nil {
		// The working directory is entered again afterwards, since the old one bypasses all
		// mounts.
		c.Dir = dir
		c.Namespaces |= p.Mounts.Clone()
		o := mounts.StepOptions{UID: os.Geteuid(), GID: os.Getegid(), Ruleset: ruleset, Terminal: terminal}
		if p.Landlock != nil {
			o.Rules = p.Landlock.Paths
		}
		c.Before = p.Mounts.Steps(c.Before, c.Memory(), o)
		c.Steps = append(c.Steps, nullSteps(c)...)
	}
	c.Steps = append(c.Steps, steps...)
	if p.Landlock != nil {
		c.Cleanup = append(c.Cleanup, func() { unix.Close(ruleset) })
		c.Commit = append(c.Commit, func(*fork.Process) error { return p.Landlock.AddRules(ruleset) })
	}
	if b != nil {
		b.Attach(c, p.recording != nil)
	}
	return b, nil
}

// filterSteps returns the steps that install the filter, and the broker for the calls that the
// filter hands over. The broker is nil if there are none.
func (p *Plan) filterSteps(m *fork.Memory) (*broker.Broker, []fork.Step, error) {
	if p.Broker == nil {
		if p.Seccomp == nil {
			return nil, nil, nil
		}
		return nil, []fork.Step{p.Seccomp.Step(m, seccomp.FilterSpecAllow)}, nil
	}
	b, steps, err := broker.New(p.Broker, m, cmp.Or(p.recording, p.Seccomp))
	if err != nil {
		return nil, nil, err
	}
	if p.recording != nil {
		p.record(b)
	}
	return b, steps, nil
}

// record makes a broker record what the command is refused. With a model the refusals are those
// of the model's files, but the filter and the broker that answer are this plan's.
func (p *Plan) record(b *broker.Broker) {
	asked := *cmp.Or(p.model, p)
	asked.reopened = p.reopened
	world := asked.world()
	world.Filter = p.Seccomp
	world.Broker = p.Broker
	w := trace.New(world, p.model != nil)
	p.recorder = w
	b.Record = w.Answer
	b.Relayed = w.Relayed
	b.Events = append(b.Events, w.Event)
}

// checkFiles refuses descriptors with which the command could bypass the plan. It returns the
// working directory.
func (p *Plan) checkFiles(c *fork.Command) (dir string, err error) {
	if p.Caps.Err != nil {
		return "", p.Caps.Err
	}
	dir = c.Dir
	if p.Mounts != nil {
		err = refuseCovered(p.Mounts, c.Files)
		if err != nil {
			return "", err
		}
	}
	if p.Mounts != nil && dir == "" {
		dir, err = os.Getwd()
		if err != nil {
			return "", fmt.Errorf("the working directory: %w", err)
		}
	}
	return dir, p.refuseSockets(c)
}

// capabilitySteps returns the steps that drop capabilities for good: from the ambient set, from
// the bounding set, from which root would get them back on exec, and from the thread's own
// sets. Without CAP_SETPCAP the bounding set can't be changed. Then no_new_privs keeps exec
// from giving more than the thread has.
//
// A process that makes a user namespace has all capabilities in it. An ordinary user loses them on
// exec, except those in the program's file.
func (p *Plan) capabilitySteps(m *fork.Memory) []fork.Step {
	if p.DropCapabilities == 0 && (p.Mounts == nil || !p.Mounts.UserNS) {
		return nil
	}
	steps := []fork.Step{{
		Name: "prctl(PR_CAP_AMBIENT)", Nr: unix.SYS_PRCTL, MayFail: true,
		Args: [6]uintptr{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL},
	}}
	for left := p.DropCapabilities; left != 0; left &= left - 1 {
		steps = append(steps, fork.Step{
			Name: "prctl(PR_CAPBSET_DROP)", Nr: unix.SYS_PRCTL, MayFail: true,
			Args: [6]uintptr{unix.PR_CAPBSET_DROP, uintptr(bits.TrailingZeros64(left))},
		})
	}
	head := fork.Put(m, unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3})
	data := fork.Put(m, [2]unix.CapUserData{})
	for i := range data {
		half := uint32(p.keeps() >> (32 * i))
		data[i] = unix.CapUserData{Effective: half, Permitted: half}
	}
	return append(steps, fork.Step{
		Name: "capset(2)", Nr: unix.SYS_CAPSET,
		Args: [6]uintptr{uintptr(unsafe.Pointer(head)), uintptr(unsafe.Pointer(data))},
	})
}

// ExplainStart says why a command could not be confined, if err is a *fork.StepError about a step
// of Confine. The result wraps err. Any other error, or nil, is returned unchanged.
func ExplainStart(err error) error {
	se, ok := errors.AsType[*fork.StepError](err)
	if !ok || se.Stage == fork.StageExec {
		return err
	}
	if se.Tag == mounts.TagCheck && se.Errno == syscall.ESTALE {
		return fmt.Errorf("%s %w: %w", se.Name, landlock.ErrChanged, err)
	}
	type failure struct {
		tag   fork.Tag
		errno syscall.Errno
	}
	const outer = "another sandbox around this one refuses it"
	why := map[failure]string{
		{landlock.Tag, syscall.EPERM}: outer,
		{seccomp.Tag, syscall.EPERM}:  outer,
		{seccomp.Tag, syscall.EACCES}: outer,
		{landlock.Tag, syscall.E2BIG}: "16 Landlock domains are nested here already, and more are not possible",
		{seccomp.Tag, syscall.ENOMEM}: "too many seccomp filters are nested here already, or memory is short",
	}[failure{se.Tag, se.Errno}]
	if why != "" {
		return fmt.Errorf("%s: %w", why, err)
	}
	return err
}
