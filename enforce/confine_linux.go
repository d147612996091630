package enforce

import (
	"fmt"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// Not in x/sys/unix, or untyped there.
const (
	capabilityVersion3 = 0x20080522

	// filterSpecAllow is SECCOMP_FILTER_FLAG_SPEC_ALLOW: without it,
	// kernels before 5.16 slow the whole command down by a mitigation that
	// it would not have without zsbx either.
	filterSpecAllow = 1 << 2
)

// minRulesetFd keeps the ruleset's descriptor off those of the command.
const minRulesetFd = 3

func (p *Plan) confine(c *fork.Command) error {
	m, err := p.confineMediated(c)
	if m != nil {
		// The calls may come before fork.Start returns.
		then, begun := c.Meanwhile, false
		c.Meanwhile = func(p *fork.Process) {
			begun = true
			go m.Serve()
			if then != nil {
				then(p)
			}
		}
		c.Cleanup = append(c.Cleanup, func() {
			if !begun {
				m.Close()
			}
		})
	}
	return err
}

func (p *Plan) confineMediated(c *fork.Command) (*Mediator, error) {
	dir, err := p.checkMounts(c)
	if err == nil {
		err = p.refuseSockets(c)
	}
	if err != nil {
		return nil, err
	}
	fd := -1
	var own *terminal
	if p.Landlock != nil {
		if fd, err = p.Landlock.create(); err != nil {
			return nil, err
		}
		own = p.Mounts.terminal(c.Files, fd)
	}
	steps := p.capabilitySteps(c.Memory())
	cleanup := c.Cleanup
	if p.Landlock != nil || p.Seccomp != nil {
		steps = append(steps, fork.Step{
			Name: "prctl(PR_SET_NO_NEW_PRIVS)", Nr: unix.SYS_PRCTL,
			Args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1},
		})
	}
	if p.Landlock != nil {
		cleanup = append(cleanup, func() { unix.Close(fd) })
		steps = append(steps, fork.Step{
			Name: "landlock_restrict_self(2)", Nr: unix.SYS_LANDLOCK_RESTRICT_SELF,
			Args: [6]uintptr{uintptr(fd)},
		})
	}
	var m *Mediator
	switch {
	case p.Mediation != nil:
		hand, err := newHandover(c.Memory())
		if err != nil {
			for _, f := range cleanup[len(c.Cleanup):] {
				f()
			}
			return nil, err
		}
		m = &Mediator{mediator{policy: p.Mediation, hand: hand, ended: make(chan struct{})}}
		then := c.Meanwhile
		c.Meanwhile = func(p *fork.Process) {
			if !m.apart {
				hand.forked()
			}
			m.process = p
			if then != nil {
				then(p)
			}
		}
		cleanup = append(cleanup, hand.forked)
		steps = append(steps, hand.steps(c.Memory(), p.Seccomp)...)
	case p.Seccomp != nil:
		steps = append(steps, p.Seccomp.step(c.Memory(), filterSpecAllow))
	}
	p.addMounts(c, dir, fd, own)
	c.Steps, c.Cleanup = append(c.Steps, steps...), cleanup
	if p.Landlock != nil {
		c.Prepare = append(c.Prepare, func() error { return p.Landlock.addRules(fd) })
	}
	return m, nil
}

// sockFprog is struct sock_fprog of linux/filter.h.
type sockFprog struct {
	length uint16
	filter *Instruction
}

// step installs the filter. What follows it is judged by it.
func (f *Filter) step(m *fork.Memory, flags uintptr) fork.Step {
	prog := fork.Put(m, sockFprog{uint16(len(f.Program)), &fork.PutSlice(m, f.Program)[0]})
	return fork.Step{
		Name: "seccomp(SECCOMP_SET_MODE_FILTER)", Nr: unix.SYS_SECCOMP,
		Args: [6]uintptr{unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog))},
	}
}

// capabilitySteps take capabilities away for good: from the ambient set, from
// the bounding set, by which root would get them back on exec, and from the
// thread's own sets. Without CAP_SETPCAP the bounding set can't be changed;
// no_new_privs then keeps exec from giving more than the thread has.
//
// Whoever makes a user namespace has all capabilities in it. An ordinary user's
// exec gives them up, but not those that the program's file names.
func (p *Plan) capabilitySteps(m *fork.Memory) []fork.Step {
	userNS := p.Mounts != nil && p.Mounts.UserNS
	if p.DropCapabilities == 0 && !userNS {
		return nil
	}
	steps := []fork.Step{{
		Name: "prctl(PR_CAP_AMBIENT)", Nr: unix.SYS_PRCTL, MayFail: true,
		Args: [6]uintptr{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL},
	}}
	keep := p.Caps.Capabilities &^ p.DropCapabilities
	if userNS {
		keep = 0
	}
	for left := p.DropCapabilities; left != 0; left &= left - 1 {
		steps = append(steps, fork.Step{
			Name: "prctl(PR_CAPBSET_DROP)", Nr: unix.SYS_PRCTL, MayFail: true,
			Args: [6]uintptr{unix.PR_CAPBSET_DROP, uintptr(bits.TrailingZeros64(left))},
		})
	}
	head := fork.Put(m, unix.CapUserHeader{Version: capabilityVersion3})
	data := fork.Put(m, [2]unix.CapUserData{})
	for i := range data {
		half := uint32(keep >> (32 * i))
		data[i] = unix.CapUserData{Effective: half, Permitted: half}
	}
	return append(steps, fork.Step{
		Name: "capset(2)", Nr: unix.SYS_CAPSET,
		Args: [6]uintptr{uintptr(unsafe.Pointer(head)), uintptr(unsafe.Pointer(data))},
	})
}

// rulesetAttr is struct landlock_ruleset_attr.
type rulesetAttr struct {
	fs, net, scoped uint64
	quiet           [3]uint64
}

// pathBeneath is struct landlock_path_beneath_attr, which is packed: of fd the
// kernel reads the low half.
type pathBeneath struct {
	rights uint64
	fd     uintptr
}

const rulePathBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH

// create makes the kernel's ruleset, without rules, and returns its descriptor,
// which closes on exec.
func (rs *Ruleset) create() (int, error) {
	attr := rulesetAttr{fs: rs.HandledFS, net: rs.HandledNet, scoped: rs.Scoped}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), abiOf(rs.ABI).AttrSize, 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock_create_ruleset(2) for ABI %d: %w", rs.ABI, errno)
	}
	fd := int(r)
	if fd < minRulesetFd {
		up, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, minRulesetFd)
		unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("moving the ruleset's descriptor: %w", err)
		}
		fd = up
	}
	return fd, nil
}

// addRules fills the ruleset. The processes that were forked meanwhile have the
// same one.
func (rs *Ruleset) addRules(fd int) error {
	for i := range rs.Paths {
		if err := addPath(fd, &rs.Paths[i]); err != nil {
			return err
		}
	}
	for _, r := range rs.Ports {
		attr := struct{ rights, port uint64 }{r.Rights, uint64(r.Port)}
		if err := addRule(fd, 2, unsafe.Pointer(&attr)); err != nil { // LANDLOCK_RULE_NET_PORT
			return fmt.Errorf("landlock rule for port %d (%s): %w", r.Port, r.Origin, err)
		}
	}
	return nil
}

func addRule(fd int, kind uintptr, attr unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(fd), kind, uintptr(attr), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// addPath opens a path, makes sure that it is still what was resolved, and
// adds the rule by that very descriptor: a link put in its place meanwhile is
// either seen here or too late.
func addPath(ruleset int, r *PathRule) error {
	fd, err := openPath(r)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	attr := pathBeneath{r.Rights, uintptr(fd)}
	if err := addRule(ruleset, rulePathBeneath, unsafe.Pointer(&attr)); err != nil {
		return fmt.Errorf("landlock rule for %s (%s): %w", r.Path, r.Origin, err)
	}
	return nil
}
